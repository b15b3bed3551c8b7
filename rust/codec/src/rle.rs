//! Run-length encoding: one value and one length for each run.
//!
//! ```text
//! values    1 1 1 2 2 3
//! stored    values 1 2 3    lengths 3 2 1     (u8; a run of 300 is one of 255 and one of 45)
//! ```

#![allow(unsafe_code)]

use crate::bitpack::Word;
use crate::error::{CodecError, Result};
use crate::word_size::{for_word, unknown_bits};

/// Bytes that are written at a time.
const SPLAT: usize = 32;

/// Appends `num_values` values as little-endian bytes.
///
/// `length_bits` is the width of a length. Values of runs beyond `num_values` are ignored: some writers cut a chunk in the middle of a run.
pub fn decode(
    bits: u64,
    values: &[u8],
    lengths: &[u8],
    length_bits: u64,
    num_values: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    for_word!(length_bits, L => for_word!(bits, V => decode_words::<V, L>(values, lengths, num_values, out)))
}

fn decode_words<V: Word, L: Word>(values: &[u8], lengths: &[u8], num_values: usize, out: &mut Vec<u8>) -> Result<()> {
    let (values_size, lengths_size) = (V::BITS / 8, L::BITS / 8);
    let runs = values.len() / values_size;
    if !values.len().is_multiple_of(values_size) || runs.checked_mul(lengths_size) != Some(lengths.len()) {
        return Err(CodecError::corrupt(format!(
            "expected a value of {values_size} bytes and a length of {lengths_size} for each run, found {} and {} bytes",
            values.len(),
            lengths.len()
        )));
    }
    let (values, lengths) = (V::words(values), L::words(lengths));
    let found = lengths.iter().fold(0_usize, |sum, length| {
        sum.saturating_add(L::from_bytes(*length).to_usize())
    });
    let bytes = num_values.checked_mul(values_size).filter(|_| found >= num_values);
    let Some(bytes) = bytes else {
        return Err(CodecError::corrupt(format!(
            "expected runs of {num_values} values, found {found}"
        )));
    };
    let start = out.len();
    // Wide lengths can promise more than there is memory for.
    out.try_reserve(bytes.saturating_add(SPLAT))
        .map_err(|e| CodecError::TooLarge(format!("runs of {num_values} values of {values_size} bytes: {e}")))?;
    let room = out.as_mut_ptr().wrapping_add(start);
    let mut written = 0;
    for (value, length) in values.iter().zip(lengths) {
        let splat = splat::<V>(*value);
        let length = L::from_bytes(*length).to_usize();
        // A product that overflows saturates, which is beyond `bytes` in any case.
        let end = bytes.min(length.saturating_mul(values_size).saturating_add(written));
        let mut at = written;
        while at < end {
            // SAFETY: `bytes + SPLAT` bytes are reserved from `room` on, and `at` is below `end`, which is at most `bytes`.
            unsafe { room.add(at).cast::<[u8; SPLAT]>().write(splat) };
            at += SPLAT;
        }
        written = end;
    }
    debug_assert_eq!(written, bytes);
    // SAFETY: the lengths sum up to at least `num_values` (checked above), so `written` is `bytes`; each run has written all up to its
    // end, beyond which the next one starts.
    unsafe { out.set_len(start + written) };
    Ok(())
}

/// A value repeated to [`SPLAT`] bytes. Runs are written in such steps, the last of which may go beyond the end of the run.
#[inline(always)]
fn splat<V: Word>(value: V::Bytes) -> [u8; SPLAT] {
    let mut splat = [0; SPLAT];
    V::words_mut(&mut splat).fill(value);
    splat
}

/// Appends the runs of little-endian values of `bits` bits, with lengths of a byte; longer runs are cut at 255.
pub fn encode(bits: u64, values: &[u8], out_values: &mut Vec<u8>, out_lengths: &mut Vec<u8>) {
    match bits {
        8 => encode_words::<u8>(values, out_values, out_lengths),
        16 => encode_words::<u16>(values, out_values, out_lengths),
        32 => encode_words::<u32>(values, out_values, out_lengths),
        _ => encode_words::<u64>(values, out_values, out_lengths),
    }
}

fn encode_words<V: Word>(values: &[u8], out_values: &mut Vec<u8>, out_lengths: &mut Vec<u8>) {
    let mut words = V::words(values).iter();
    let Some(mut current) = words.next() else { return };
    let mut length = 1_u8;
    for word in words {
        if length < u8::MAX && V::from_bytes(*word) == V::from_bytes(*current) {
            length += 1;
        } else {
            out_values.extend_from_slice(current.as_ref());
            out_lengths.push(length);
            (current, length) = (word, 1);
        }
    }
    out_values.extend_from_slice(current.as_ref());
    out_lengths.push(length);
}

/// The number of runs of equal values, of any length.
pub fn count_runs(bits: u64, values: &[u8]) -> usize {
    fn count<V: Word>(values: &[u8]) -> usize {
        let words = V::words(values);
        let pairs = words.iter().zip(words.get(1..).unwrap_or_default());
        let changes = pairs.map(|(before, after)| usize::from(V::from_bytes(*before) != V::from_bytes(*after)));
        changes.sum::<usize>() + usize::from(!words.is_empty())
    }
    match bits {
        8 => count_byte_runs(values),
        16 => count::<u16>(values),
        32 => count::<u32>(values),
        _ => count::<u64>(values),
    }
}

/// As `count`, eight bytes at a time.
fn count_byte_runs(values: &[u8]) -> usize {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let Some((_, afters)) = values.split_first() else {
        return 0;
    };
    let (befores, afters) = (values.as_chunks::<8>().0, afters.as_chunks::<8>().0);
    let changes = befores.iter().zip(afters).map(|(before, after)| {
        let different = u64::from_le_bytes(*before) ^ u64::from_le_bytes(*after);
        // Sets the highest bit of each byte that is not 0; the multiplication then sums these bits up in the highest byte.
        let bits = (((different & !HIGH) + !HIGH) | different) & HIGH;
        usize::from((bits >> 7).wrapping_mul(0x0101_0101_0101_0101).to_be_bytes()[0])
    });
    let changes = changes.sum::<usize>();
    let rest = values.get(afters.len() * 8..).unwrap_or_default();
    let rest = rest.iter().zip(rest.get(1..).unwrap_or_default());
    1 + changes + rest.filter(|(before, after)| before != after).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_runs_come_back_and_long_ones_are_cut() {
        let values: Vec<u8> = [1_u16; 600]
            .iter()
            .chain(&[2; 3])
            .chain(&[1])
            .flat_map(|v| v.to_le_bytes())
            .collect();
        let (mut runs, mut lengths) = (Vec::new(), Vec::new());
        encode(16, &values, &mut runs, &mut lengths);
        assert_eq!(lengths, [255, 255, 90, 3, 1]);
        assert_eq!(runs, [1, 0, 1, 0, 1, 0, 2, 0, 1, 0]);
        assert_eq!(count_runs(16, &values), 3);
        let mut out = Vec::new();
        decode(16, &runs, &lengths, 8, 604, &mut out).unwrap();
        assert_eq!(out, values);
    }

    #[test]
    fn test_wide_lengths_and_runs_beyond_the_end_are_read() {
        let mut out = Vec::new();
        decode(8, &[7, 8], &[3, 0, 0xff, 0xff], 16, 5, &mut out).unwrap();
        assert_eq!(out, [7, 7, 7, 8, 8]);
        out.clear();
        decode(8, &[7, 8, 9], &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0], 32, 3, &mut out).unwrap();
        assert_eq!(out, [7, 9, 9]);
    }

    #[test]
    fn test_lies_are_refused() {
        let mut out = Vec::new();
        assert!(decode(8, &[7], &[200], 8, 201, &mut out).is_err());
        assert!(decode(64, &[7; 8], &[0xff; 8], 64, usize::MAX, &mut out).is_err());
        assert!(decode(64, &[7; 8], &[0xff; 8], 64, usize::MAX / 8, &mut out).is_err());
        assert!(decode(16, &[7; 3], &[1], 8, 1, &mut out).is_err());
        assert!(decode(16, &[7; 4], &[1], 8, 1, &mut out).is_err());
        assert!(decode(16, &[7; 4], &[1; 3], 16, 1, &mut out).is_err());
        assert!(decode(12, &[], &[], 8, 0, &mut out).is_err());
        assert!(decode(8, &[], &[], 8, 1, &mut out).is_err());
        assert!(out.is_empty());
    }
}
