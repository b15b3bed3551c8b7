//! End offsets that encode nulls too, as file version 2.0 stores strings and lists.
//!
//! ```text
//! values      "ab"  null  ""  "cde"        null adjustment 6 (larger than any real end)
//! stored        2     8    2     5         u64, little endian; the leading 0 is left out
//! ```
//!
//! A null stores the end of the value before it plus the null adjustment.

use crate::error::{CodecError, Result};

/// An offset type of Arrow: i32 or i64.
pub trait Offset: Copy + Default + Send + Sync + 'static {
    /// The largest offset that the type holds.
    const MAX: u64;
    /// The offset, or its wrapped bits where it is larger than `MAX`; callers check the largest one.
    fn from_u64(value: u64) -> Self;
    /// The offset as a number; a negative one becomes huge.
    fn to_u64(self) -> u64;
}

impl Offset for i32 {
    const MAX: u64 = 0x7fff_ffff;
    #[allow(clippy::cast_possible_truncation)] // The caller checks the last, and so the largest, offset.
    fn from_u64(value: u64) -> Self {
        value as i32
    }
    #[allow(clippy::cast_sign_loss)] // Negative offsets are not valid Arrow; huge ones fail every bound check.
    fn to_u64(self) -> u64 {
        self as u64
    }
}

impl Offset for i64 {
    const MAX: u64 = 0x7fff_ffff_ffff_ffff;
    #[allow(clippy::cast_possible_wrap)] // As above.
    fn from_u64(value: u64) -> Self {
        value as i64
    }
    #[allow(clippy::cast_sign_loss)] // As above.
    fn to_u64(self) -> u64 {
        self as u64
    }
}

fn read_u64(chunk: &[u8]) -> u64 {
    chunk.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The end of a stored value, without the null adjustment.
pub fn real_end(stored: u64, null_adjustment: u64) -> u64 {
    if stored >= null_adjustment {
        stored.wrapping_sub(null_adjustment)
    } else {
        stored
    }
}

/// Turns a run of stored ends into Arrow offsets.
///
/// `stored` are the little-endian u64 ends of the run, `start` is the real end of the value before it. `offsets` must already hold
/// its first offset; one is added for each value. Returns whether the run has nulls.
pub fn decode_ends<O: Offset>(stored: &[u8], start: u64, null_adjustment: u64, offsets: &mut Vec<O>) -> Result<bool> {
    let base = offsets.last().copied().unwrap_or_default().to_u64();
    let (mut previous, mut falls, mut any_null, mut beyond) = (start, false, false, false);
    offsets.extend(stored.chunks_exact(8).map(|chunk| {
        let value = read_u64(chunk);
        let is_null = value >= null_adjustment;
        let end = if is_null {
            value.wrapping_sub(null_adjustment)
        } else {
            value
        };
        any_null |= is_null;
        falls |= end < previous;
        beyond |= end >= null_adjustment;
        previous = end;
        O::from_u64(end.wrapping_sub(start).wrapping_add(base))
    }));
    if falls {
        return Err(CodecError::corrupt(
            "expected end offsets that never fall, found one below the end before it",
        ));
    }
    if beyond {
        return Err(CodecError::corrupt(
            "expected end offsets below the null adjustment, found a larger one",
        ));
    }
    let largest = previous.wrapping_sub(start).checked_add(base);
    if largest.is_none_or(|end| end > O::MAX) {
        return Err(CodecError::TooLarge(format!(
            "the values of one batch hold more than {} bytes or items; read fewer rows at a time or use a large_ type",
            O::MAX
        )));
    }
    Ok(any_null)
}

/// Adds one validity flag for each stored end.
pub fn decode_validity(stored: &[u8], null_adjustment: u64, mut push: impl FnMut(bool)) {
    for chunk in stored.chunks_exact(8) {
        push(read_u64(chunk) < null_adjustment);
    }
}

/// Appends the stored form of a run of Arrow offsets.
///
/// `offsets` are the n + 1 offsets of the run, `start` the real end before it, `is_valid` says which values are there. Bytes
/// or items that Arrow lets a null span are kept. Returns the real end after the run.
pub fn encode_ends<O: Offset>(
    offsets: &[O],
    start: u64,
    null_adjustment: u64,
    is_valid: Option<&dyn Fn(usize) -> bool>,
    stored: &mut Vec<u8>,
) -> u64 {
    let first = offsets.first().copied().unwrap_or_default().to_u64();
    let shift = start.wrapping_sub(first);
    stored.reserve(offsets.len().saturating_sub(1).saturating_mul(8));
    let mut end = start;
    match is_valid {
        None => {
            for offset in offsets.iter().skip(1) {
                end = offset.to_u64().wrapping_add(shift);
                stored.extend_from_slice(&end.to_le_bytes());
            }
        }
        Some(is_valid) => {
            for (index, offset) in offsets.iter().skip(1).enumerate() {
                end = offset.to_u64().wrapping_add(shift);
                let value = if is_valid(index) {
                    end
                } else {
                    end.wrapping_add(null_adjustment)
                };
                stored.extend_from_slice(&value.to_le_bytes());
            }
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_ends_with_nulls_come_back() {
        let mut stored = Vec::new();
        let valid = [true, false, true, true];
        let end = encode_ends::<i32>(&[7, 9, 9, 9, 12], 0, 6, Some(&|i| valid[i]), &mut stored);
        assert_eq!(end, 5);
        assert_eq!(stored.chunks(8).map(read_u64).collect::<Vec<_>>(), vec![2, 8, 2, 5]);
        let mut offsets = vec![0_i64];
        assert!(decode_ends(&stored, 0, 6, &mut offsets).unwrap());
        assert_eq!(offsets, vec![0, 2, 2, 2, 5]);
        let mut flags = Vec::new();
        decode_validity(&stored, 6, |flag| flags.push(flag));
        assert_eq!(flags, valid);
    }

    #[test]
    fn test_a_run_from_the_middle_starts_at_zero() {
        let mut stored = Vec::new();
        encode_ends::<i64>(&[0, 2, 5, 9], 0, 10, None, &mut stored);
        let mut offsets = vec![0_i32];
        assert!(!decode_ends(&stored[8..], 2, 10, &mut offsets).unwrap());
        assert_eq!(offsets, vec![0, 3, 7]);
    }

    #[test]
    fn test_ends_that_fall_or_overflow_are_refused() {
        let bytes = |values: &[u64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
        assert!(decode_ends(&bytes(&[5, 3]), 0, 9, &mut vec![0_i32]).is_err());
        assert!(decode_ends(&bytes(&[5]), 6, 9, &mut vec![0_i32]).is_err());
        assert!(decode_ends(&bytes(&[u64::MAX]), 0, 9, &mut vec![0_i64]).is_err());
        assert!(decode_ends(&bytes(&[1 << 31]), 0, u64::MAX, &mut vec![0_i32]).is_err());
        assert!(decode_ends(&bytes(&[1 << 31]), 0, u64::MAX, &mut vec![0_i64]).is_ok());
    }
}
