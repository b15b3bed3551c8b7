//! Bit stream: values of the same number of bits, one right after the other, as file version 2.0 packs integers.
//!
//! ```text
//! bits 5    values a b ..    byte 0  b2 b1 b0 a4 a3 a2 a1 a0    byte 1  .. b4 b3     lowest bit first
//! ```
//!
//! Where the values are signed, the highest bit of each is its sign.

use crate::bitpack::Word;
use crate::error::{CodecError, Result};
use crate::word_size::{for_word, unknown_bits};

/// Appends `num_values` values of `packed_bits` bits as little-endian ones of `bits` bits.
///
/// The first value starts at bit `first_bit` of `packed`.
pub fn decode(
    bits: u64,
    packed_bits: u64,
    signed: bool,
    packed: &[u8],
    first_bit: u64,
    num_values: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    for_word!(bits, W => decode_words::<W>(packed_bits, signed, packed, first_bit, num_values, out))
}

fn decode_words<W: Word>(
    packed_bits: u64,
    signed: bool,
    packed: &[u8],
    first_bit: u64,
    num_values: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    if packed_bits == 0 || packed_bits > W::BITS as u64 {
        return Err(CodecError::corrupt(format!(
            "expected a bit stream of 1 to {} bits a value, found {packed_bits}",
            W::BITS
        )));
    }
    let end = (num_values as u64)
        .checked_mul(packed_bits)
        .and_then(|bits| bits.checked_add(first_bit));
    if end.is_none_or(|end| end.div_ceil(8) > packed.len() as u64) {
        return Err(CodecError::corrupt(format!(
            "expected {num_values} values of {packed_bits} bits from bit {first_bit}, found {} bytes",
            packed.len()
        )));
    }
    let unused = 64 - packed_bits;
    let start = out.len();
    out.resize(start.saturating_add(num_values.saturating_mul(W::BITS / 8)), 0);
    let mut bit = first_bit;
    for value in W::words_mut(out.get_mut(start..).unwrap_or_default()) {
        let word = read_bits(packed, bit, packed_bits) << unused;
        #[allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)] // To shift the sign in.
        let word = if signed {
            (word as i64 >> unused) as u64
        } else {
            word >> unused
        };
        *value = W::from_low_bits(word).to_bytes();
        bit += packed_bits;
    }
    Ok(())
}

/// At least `count` bits from a bit on; bits beyond the end are 0.
#[inline]
fn read_bits(packed: &[u8], bit: u64, count: u64) -> u64 {
    let at = usize::try_from(bit / 8).unwrap_or(usize::MAX);
    let tail = packed.get(at..).unwrap_or_default();
    if let Some(bytes) = tail.first_chunk::<8>().filter(|_| count <= 57) {
        return u64::from_le_bytes(*bytes) >> (bit % 8);
    }
    let mut window = [0; 16];
    match tail.first_chunk::<9>() {
        Some(bytes) => window.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from),
        None => window.iter_mut().zip(tail).for_each(|(to, from)| *to = *from),
    }
    #[allow(clippy::cast_possible_truncation)] // The lowest 64 bits are wanted.
    let word = (u128::from_le_bytes(window) >> (bit % 8)) as u64;
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(bits: usize, values: &[u64]) -> Vec<u8> {
        let mut packed = vec![0; (bits * values.len()).div_ceil(8)];
        for (i, value) in values.iter().enumerate() {
            for bit in (0..bits).filter(|bit| value >> bit & 1 == 1) {
                packed[(i * bits + bit) / 8] |= 1 << ((i * bits + bit) % 8);
            }
        }
        packed
    }

    #[test]
    fn test_values_of_any_width_come_back_from_any_value_on() {
        for bits in 1..=64_usize {
            let mask = u64::MAX >> (64 - bits);
            let values: Vec<u64> = (1..30_u64)
                .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask)
                .collect();
            let packed = pack(bits, &values);
            for skip in [0, 1, 7, 28] {
                let mut out = Vec::new();
                let first = (skip * bits) as u64;
                decode(64, bits as u64, false, &packed, first, values.len() - skip, &mut out).unwrap();
                let expected: Vec<u8> = values[skip..].iter().flat_map(|v| v.to_le_bytes()).collect();
                assert_eq!(out, expected, "{bits}");
            }
        }
    }

    #[test]
    fn test_signs_are_drawn_out() {
        let packed = pack(5, &[0b11111, 0b01111, 0b10000]);
        let mut out = Vec::new();
        decode(16, 5, true, &packed, 0, 3, &mut out).unwrap();
        let expected: Vec<u8> = [-1_i16, 15, -16].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(out, expected);
    }

    #[test]
    fn test_lies_are_refused() {
        let mut out = Vec::new();
        assert!(decode(32, 5, false, &[0; 5], 0, 9, &mut out).is_err());
        assert!(decode(32, 5, false, &[0; 5], 1, 8, &mut out).is_err());
        assert!(decode(32, 33, false, &[0; 5], 0, 1, &mut out).is_err());
        assert!(decode(32, 0, false, &[0; 5], 0, 1, &mut out).is_err());
        assert!(decode(32, 5, false, &[0; 5], 0, usize::MAX, &mut out).is_err());
        assert!(decode(32, 5, false, &[0; 5], u64::MAX, 1, &mut out).is_err());
        assert!(out.is_empty());
    }
}
