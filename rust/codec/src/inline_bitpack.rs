//! Inline bit packing: one chunk of up to 1024 values, with the packed width in front.
//!
//! ```text
//! word of the unpacked width, little endian: bits a value      packed block (see `bitpack`), padded with zeros
//! ```

use std::ops::Range;

use crate::bitpack::{bit_width, pack_block, pack_bytes, packed_size, unpack_onto, unpack_range, Word, BLOCK};
use crate::error::{CodecError, Result};
use crate::word_size::{for_word, unknown_bits};

/// Appends the first `num_values` values of a chunk as little-endian bytes. `bits` is the unpacked width.
pub fn decode(bits: u64, chunk: &[u8], num_values: usize, out: &mut Vec<u8>) -> Result<()> {
    if num_values > BLOCK {
        return Err(CodecError::corrupt(format!(
            "expected at most 1024 values in a chunk of bit packed values, found {num_values}"
        )));
    }
    for_word!(bits, W => {
        let (width, packed) = split_width::<W>(chunk)?;
        unpack_onto::<W>(width, packed, num_values, out)
    })
}

/// Appends the values of `range` of a chunk as little-endian bytes, without unpacking the others.
pub fn decode_range(bits: u64, chunk: &[u8], range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
    for_word!(bits, W => {
        let (width, packed) = split_width::<W>(chunk)?;
        unpack_range::<W>(width, packed, range, out)
    })
}

/// Appends the chunk of up to 1024 little-endian values, packed into as few bits as the largest needs.
///
/// The caller passes whole values of `bits` bits, at most 1024 of them; any rest is ignored.
pub fn encode(bits: u64, values: &[u8], out: &mut Vec<u8>) {
    fn encode<W: Word>(values: &[u8], out: &mut Vec<u8>) {
        let width = width_of::<W>(values);
        out.extend_from_slice(W::from_low_bits(width as u64).to_bytes().as_ref());
        if values.len() >= BLOCK * W::BITS / 8 {
            return pack_bytes::<W>(width, values, out);
        }
        let mut block = [W::default(); BLOCK];
        for (to, from) in block.iter_mut().zip(W::words(values)) {
            *to = W::from_bytes(*from);
        }
        pack_block(width, &block, out);
    }
    match bits {
        8 => encode::<u8>(values, out),
        16 => encode::<u16>(values, out),
        32 => encode::<u32>(values, out),
        _ => encode::<u64>(values, out),
    }
}

/// The bytes that [`encode`] would append.
pub fn encoded_size(bits: u64, values: &[u8]) -> usize {
    fn size<W: Word>(values: &[u8]) -> usize {
        W::BITS / 8 + packed_size(width_of::<W>(values))
    }
    match bits {
        8 => size::<u8>(values),
        16 => size::<u16>(values),
        32 => size::<u32>(values),
        _ => size::<u64>(values),
    }
}

/// The number of bits that the largest of the little-endian values needs.
fn width_of<W: Word>(values: &[u8]) -> usize {
    let words = W::words(values).iter();
    bit_width(&[words.fold(W::default(), |any, bytes| any | W::from_bytes(*bytes))])
}

fn split_width<W: Word>(chunk: &[u8]) -> Result<(usize, &[u8])> {
    let (word, packed) = chunk.split_at_checked(W::BITS / 8).ok_or_else(|| {
        CodecError::corrupt(format!(
            "expected a width of {} bytes before bit packed values, found {} bytes",
            W::BITS / 8,
            chunk.len()
        ))
    })?;
    let width = W::words(word)
        .first()
        .map_or(0, |bytes| W::from_bytes(*bytes).to_usize());
    Ok((width, packed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_a_chunk_of_any_length_comes_back_with_its_size_foretold() {
        for bits in [8_u64, 16, 32, 64] {
            let bytes = bits as usize / 8;
            for count in [0, 1, 7, 1023, 1024] {
                let values: Vec<u8> = (0..count * bytes)
                    .map(|i| if i % bytes == 0 { i as u8 } else { 0 })
                    .collect();
                let mut chunk = Vec::new();
                encode(bits, &values, &mut chunk);
                assert_eq!(chunk.len(), encoded_size(bits, &values));
                let mut out = vec![9];
                decode(bits, &chunk, count, &mut out).unwrap();
                assert_eq!(out[1..], values);
                let mut some = Vec::new();
                decode_range(bits, &chunk, count / 3..count, &mut some).unwrap();
                assert_eq!(some, values[count / 3 * bytes..]);
            }
        }
    }

    #[test]
    fn test_lies_are_refused() {
        let mut chunk = Vec::new();
        encode(32, &[7; 4096], &mut chunk);
        let mut out = Vec::new();
        for cut in 0..chunk.len() {
            assert!(decode(32, &chunk[..cut], 10, &mut out).is_err(), "{cut}");
        }
        assert!(decode(32, &chunk, 1025, &mut out).is_err());
        assert!(decode(24, &chunk, 1, &mut out).is_err());
        chunk[3] = 0xff;
        assert!(decode(32, &chunk, 10, &mut out).is_err());
        assert!(out.is_empty());
    }
}
