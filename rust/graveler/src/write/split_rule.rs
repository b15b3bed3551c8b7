//! The split rule: where one range ends and the next begins.
//!
//! The rule depends only on the range's size so far and on the key just written, so two branches with the same paths break at the same
//! ones, and share the ranges in between.

use crate::error::{GravelerError, Result};

/// The parameters of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitRule {
    min_size: u64,
    max_size: u64,
    raggedness: u64,
}

impl Default for SplitRule {
    /// lakeFS's parameters: no minimal size, 20 MiB at most, a break every 50,000 entries on average.
    fn default() -> Self {
        SplitRule {
            min_size: 0,
            max_size: 20 << 20,
            raggedness: 50_000,
        }
    }
}

impl SplitRule {
    /// A rule that never breaks before `min_size` bytes, always at `max_size`, and in between after one key in `raggedness`.
    pub fn new(min_size: u64, max_size: u64, raggedness: u64) -> Result<Self> {
        if max_size == 0 || min_size > max_size || raggedness == 0 {
            return Err(GravelerError::invalid(format!(
                "expected 0 <= min_size <= max_size, max_size > 0 and raggedness > 0, found {min_size}, {max_size} and {raggedness}"
            )));
        }
        Ok(SplitRule {
            min_size,
            max_size,
            raggedness,
        })
    }

    /// Whether the range ends after `key`, when it is `size` bytes large with it.
    #[inline]
    pub fn breaks_after(&self, key: &[u8], size: u64) -> bool {
        self.breaks_at(fnv1a(key), size)
    }

    /// The same, where the hash of the key is known.
    #[inline]
    pub(super) fn breaks_at(&self, hash: u64, size: u64) -> bool {
        size >= self.min_size && (size >= self.max_size || hash.is_multiple_of(self.raggedness))
    }

    /// Whether a range of any size ends after a key of this hash, so that the following records can be encoded independently.
    #[inline]
    pub(super) fn always_breaks_at(&self, hash: u64) -> bool {
        self.min_size == 0 && hash.is_multiple_of(self.raggedness)
    }

    /// The least size, in bytes.
    pub fn min_size(&self) -> u64 {
        self.min_size
    }

    /// The largest size, in bytes, which one entry may exceed.
    pub fn max_size(&self) -> u64 {
        self.max_size
    }

    /// How many entries a range has on average beyond the least size.
    pub fn raggedness(&self) -> u64 {
        self.raggedness
    }
}

/// FNV-1a of no bytes (the offset basis).
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
/// How many bytes of a key [`KeyHash`] remembers.
const REMEMBERED: usize = 1024;

/// FNV-1a of 64 bits.
#[inline]
pub(super) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(OFFSET, one_more)
}

#[inline]
fn one_more(hash: u64, byte: &u8) -> u64 {
    (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
}

/// Hashes sorted keys incrementally: the prefix that a key shares with the last one is not hashed again.
#[derive(Debug)]
pub(super) struct KeyHash {
    /// The hashes of the prefixes of the last key: of one byte, of two, and so on.
    starts: Vec<u64>,
}

impl KeyHash {
    pub(super) fn new() -> Self {
        KeyHash {
            starts: Vec::with_capacity(REMEMBERED),
        }
    }

    /// The hash of a key that shares `shared` bytes with the last one.
    #[inline]
    pub(super) fn of(&mut self, key: &[u8], shared: usize) -> u64 {
        self.starts.truncate(shared);
        let known = self.starts.len();
        let rest = key.get(known..).unwrap_or_default();
        let (near, far) = rest.split_at(rest.len().min(REMEMBERED - known));
        let mut hash = self.starts.last().copied().unwrap_or(OFFSET);
        self.starts.extend(near.iter().map(|byte| {
            hash = one_more(hash, byte);
            hash
        }));
        far.iter().fold(hash, one_more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_the_hash_is_fnv_1a() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn test_a_hash_that_goes_on_from_the_last_key_is_the_same() {
        let long = "x".repeat(1020);
        let keys = [
            "",
            "a",
            "a",
            "ab",
            "abcdef",
            "abcxyz",
            "b",
            &long,
            &format!("{long}abcdefgh"),
            &format!("{long}abczz"),
            "c",
        ];
        let (mut hash, mut last) = (KeyHash::new(), "");
        for key in keys {
            let shared = crate::sstable::shared_prefix(key.as_bytes(), last.as_bytes());
            assert_eq!(hash.of(key.as_bytes(), shared), fnv1a(key.as_bytes()));
            last = key;
        }
    }

    #[test]
    fn test_sizes_decide_before_hashes_do() {
        let rule = SplitRule::new(100, 200, 1).unwrap();
        let breaks: Vec<_> = [0, 99, 100, 199, 200, 201]
            .iter()
            .map(|size| rule.breaks_after(b"k", *size))
            .collect();
        assert_eq!(breaks, [false, false, true, true, true, true]);
        let by_size_alone = SplitRule::new(0, 200, u64::MAX).unwrap();
        assert!(!by_size_alone.breaks_after(b"k", 199) && by_size_alone.breaks_after(b"k", 200));
        assert!(
            SplitRule::new(2, 1, 1).is_err() && SplitRule::new(0, 0, 1).is_err() && SplitRule::new(0, 1, 0).is_err()
        );
    }
}
