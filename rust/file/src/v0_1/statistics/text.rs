//! Bounds of strings and binary: at most 64 bytes, a prefix below, a prefix counted up above.

/// Bytes of a bound at the most.
const BOUND: usize = 64;

/// What a bound must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    /// Whole characters.
    Utf8,
    /// Any bytes.
    Binary,
}

/// The longest prefix that fits into a bound.
pub(crate) fn least(value: &[u8], text: Text) -> &[u8] {
    let mut end = value.len().min(BOUND);
    if text == Text::Utf8 {
        // The bytes behind the first one of a character start with the bits 10.
        while end > 0 && value.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
            end -= 1;
        }
    }
    value.get(..end).unwrap_or_default()
}

/// A bound above all values of which `prefix` is the greatest prefix: itself if none was cut, else the next greater one of its length. None
/// where there is no greater one.
pub(crate) fn greatest(prefix: &[u8], any_cut: bool, text: Text) -> Option<Vec<u8>> {
    if !any_cut {
        return Some(prefix.to_vec());
    }
    let mut bound = prefix.to_vec();
    for at in (0..bound.len()).rev() {
        let original = bound.get(at).copied()?;
        // Nothing is above 255: the byte before it is counted up instead.
        for byte in original.saturating_add(1)..=u8::MAX {
            if byte == original {
                break;
            }
            if let Some(place) = bound.get_mut(at) {
                *place = byte;
            }
            if text == Text::Binary || std::str::from_utf8(&bound).is_ok() {
                return Some(bound);
            }
        }
        if let Some(place) = bound.get_mut(at) {
            *place = if text == Text::Binary { 0 } else { original };
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_a_bound_is_counted_up_from_the_right() {
        assert_eq!(greatest(b"abc", true, Text::Utf8), Some(b"abd".to_vec()));
        assert_eq!(greatest(b"abc", false, Text::Utf8), Some(b"abc".to_vec()));
        assert_eq!(greatest(&[1, 255], true, Text::Binary), Some(vec![2, 0]));
        assert_eq!(greatest(&[255, 255], true, Text::Binary), None);
        assert_eq!(
            greatest("é".as_bytes(), true, Text::Utf8),
            Some("ê".as_bytes().to_vec())
        );
        assert_eq!(
            greatest("a\u{10ffff}".as_bytes(), true, Text::Utf8),
            Some("b\u{10ffff}".as_bytes().to_vec())
        );
    }

    proptest! {
        #[test]
        fn test_bounds_hold_every_value(value in "\\PC{0,40}", other in "\\PC{0,40}") {
            for text in [Text::Utf8, Text::Binary] {
                let (a, b) = (value.as_bytes(), other.as_bytes());
                let (low, high) = (least(a, text), least(b, text));
                let any_cut = low.len() < a.len() || high.len() < b.len();
                prop_assert!(low.min(high) <= a.min(b));
                if let Some(bound) = greatest(low.max(high), any_cut, text) {
                    prop_assert!(bound.as_slice() >= a.max(b));
                    prop_assert!(text == Text::Binary || std::str::from_utf8(&bound).is_ok());
                }
            }
        }
    }
}
