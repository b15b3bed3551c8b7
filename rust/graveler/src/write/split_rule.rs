//! Where one range ends and the next begins.
//!
//! The rule looks at the range's size so far and at the key just written, at nothing else: so two branches that hold the same paths break
//! at the same ones, and share what lies between.

use crate::error::{GravelerError, Result};

/// The parameters of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitRule {
    min_size: u64,
    max_size: u64,
    raggedness: u64,
}

impl Default for SplitRule {
    /// Those of lakeFS: no least size, 20 MiB at most, a break each 50,000 entries on average.
    fn default() -> Self {
        SplitRule {
            min_size: 0,
            max_size: 20 << 20,
            raggedness: 50_000,
        }
    }
}

impl SplitRule {
    /// A rule: never break before `min_size` bytes, always at `max_size`, in between after one key in `raggedness`.
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
        size >= self.min_size && (size >= self.max_size || self.hash_breaks(key))
    }

    /// Whether a range of any size ends after `key`: then what follows can be written without knowing what went before.
    #[inline]
    pub(super) fn always_breaks_after(&self, key: &[u8]) -> bool {
        self.min_size == 0 && self.hash_breaks(key)
    }

    #[inline]
    fn hash_breaks(&self, key: &[u8]) -> bool {
        fnv1a(key).is_multiple_of(self.raggedness)
    }

    /// The least size, in bytes.
    pub fn min_size(&self) -> u64 {
        self.min_size
    }

    /// The largest size, in bytes, which one entry may pass.
    pub fn max_size(&self) -> u64 {
        self.max_size
    }

    /// How many entries a range has on average beyond the least size.
    pub fn raggedness(&self) -> u64 {
        self.raggedness
    }
}

/// FNV-1a of 64 bits.
#[inline]
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
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
