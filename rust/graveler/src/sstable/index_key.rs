//! Keys of index entries (separators): a short key that is at or after the last key of a block and before the first of the next.

use super::{TRAILER, TRAILER_LEN};

/// The trailer of a shortened key: the highest sequence number, kind "separator". It sorts before all keys of the same user key.
const SEPARATOR: [u8; TRAILER_LEN] = [0x11, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];

/// Appends the index key of a block that ends with `last`, a user key, where the next one starts with `next`, if there is one.
pub(super) fn push_index_key(buffer: &mut Vec<u8>, last: &[u8], next: Option<&[u8]>) {
    let shortened = match next {
        Some(next) => separator(last, next),
        None => successor(last),
    };
    match shortened {
        Some((length, byte)) => {
            buffer.extend_from_slice(last.get(..length).unwrap_or(last));
            buffer.push(byte);
            buffer.extend_from_slice(&SEPARATOR);
        }
        None => {
            buffer.extend_from_slice(last);
            buffer.extend_from_slice(&TRAILER);
        }
    }
}

/// How many bytes of `last` to keep, and the byte to put after them, for a key between `last` and `next`.
fn separator(last: &[u8], next: &[u8]) -> Option<(usize, u8)> {
    let shared = shared_prefix(last, next);
    // If one key is a prefix of the other, there is no shorter separator.
    let (ours, theirs) = (*last.get(shared)?, *next.get(shared)?);
    if ours >= theirs {
        return None;
    }
    if shared + 1 < next.len() || ours + 1 < theirs {
        return Some((shared, ours + 1));
    }
    // Incremented, the byte would equal that of `next`, so a later byte is incremented.
    successor(last.get(shared + 1..)?).map(|(length, byte)| (shared + 1 + length, byte))
}

/// The same for a key after `last` where nothing follows.
fn successor(last: &[u8]) -> Option<(usize, u8)> {
    let length = last.iter().position(|byte| *byte != 0xff)?;
    Some((length, last.get(length)?.wrapping_add(1)))
}

/// The length of the common prefix of two keys.
#[inline]
pub(crate) fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    let ((words_a, _), (words_b, _)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut shared = 0;
    // A word at a time, since keys in one folder share dozens of bytes.
    for (x, y) in words_a.iter().zip(words_b) {
        let differing = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differing != 0 {
            return shared + differing.trailing_zeros() as usize / 8;
        }
        shared += 8;
    }
    let (rest_a, rest_b) = (a.get(shared..).unwrap_or_default(), b.get(shared..).unwrap_or_default());
    shared + rest_a.iter().zip(rest_b).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn between(last: &[u8], next: Option<&[u8]>) -> Vec<u8> {
        let mut key = Vec::new();
        push_index_key(&mut key, last, next);
        key
    }

    #[test]
    fn test_a_key_is_shortened_where_that_keeps_it_in_between() {
        let cases: [(&[u8], Option<&[u8]>, &[u8]); 9] = [
            (b"a/b/c/yes", None, b"b\x11\xff\xff\xff\xff\xff\xff\xff"),
            (b"black", Some(b"blue"), b"blb\x11\xff\xff\xff\xff\xff\xff\xff"),
            (b"green", Some(b"greener"), b"green\x01\0\0\0\0\0\0\0"),
            (b"1", Some(b"2"), b"1\x01\0\0\0\0\0\0\0"),
            (b"1", Some(b"29"), b"2\x11\xff\xff\xff\xff\xff\xff\xff"),
            (b"13", Some(b"2"), b"14\x11\xff\xff\xff\xff\xff\xff\xff"),
            (b"1\xff\xff", Some(b"2"), b"1\xff\xff\x01\0\0\0\0\0\0\0"),
            (b"\xff\xff", None, b"\xff\xff\x01\0\0\0\0\0\0\0"),
            (b"1357", Some(b"2"), b"14\x11\xff\xff\xff\xff\xff\xff\xff"),
        ];
        for (last, next, expected) in cases {
            assert_eq!(between(last, next), expected, "{last:?} {next:?}");
        }
    }

    proptest! {
        #[test]
        fn test_what_two_keys_share_is_found_wherever_they_part(
            key in prop::collection::vec(any::<u8>(), 0..40), at in 0..40usize, rest in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let mut other = key[..at.min(key.len())].to_vec();
            other.extend_from_slice(&rest);
            let expected = key.iter().zip(&other).take_while(|(x, y)| x == y).count();
            prop_assert_eq!(shared_prefix(&key, &other), expected);
            prop_assert_eq!(shared_prefix(&other, &key), expected);
        }

        #[test]
        fn test_an_index_key_is_never_before_the_last_and_always_before_the_next(
            a in prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(254), Just(255), any::<u8>()], 0..6),
            b in prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(254), Just(255), any::<u8>()], 0..6),
        ) {
            prop_assume!(a < b);
            for next in [Some(b.as_slice()), None] {
                let key = between(&a, next);
                let user = &key[..key.len() - 8];
                prop_assert!(user >= a.as_slice() && user.len() <= a.len());
                if let Some(next) = next {
                    prop_assert!(user < next);
                }
            }
        }
    }
}
