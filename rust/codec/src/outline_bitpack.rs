//! Out-of-line bit packing: one width for all blocks, which the page's description holds.
//!
//! ```text
//! packed block, packed block, ..  then the last num_values % 1024 values:
//!   as a packed block padded with zeros, or raw where that is no longer (a reader tells them apart by the number of words)
//! ```
//!
//! Values that are all 0 may be packed into 0 bits, and take no bytes: pylance has levels of pages without nulls like that.

use crate::bitpack::{pack_block, pack_bytes, packed_size, unpack_onto, Word, BLOCK};
use crate::error::{CodecError, Result};
use crate::word_size::{for_word, unknown_bits};

/// The most values that are packed into no bits: as many as a chunk of a page counts.
const MOST_OF_NO_BITS: usize = 1 << 16;

/// Appends `num_values` values as little-endian bytes. `bits` is the unpacked width, `packed_bits` the packed one.
pub fn decode(bits: u64, packed_bits: u64, bytes: &[u8], num_values: usize, out: &mut Vec<u8>) -> Result<()> {
    for_word!(bits, W => decode_words::<W>(packed_bits, bytes, num_values, out))
}

fn decode_words<W: Word>(packed_bits: u64, bytes: &[u8], num_values: usize, out: &mut Vec<u8>) -> Result<()> {
    let word_size = W::BITS / 8;
    let width = match usize::try_from(packed_bits) {
        Ok(width) if width <= W::BITS => width,
        _ => {
            return Err(CodecError::corrupt(format!(
                "expected values packed into at most {} bits, found {packed_bits}",
                W::BITS
            )))
        }
    };
    let (blocks, tail) = (num_values / BLOCK, num_values % BLOCK);
    if width == 0 {
        return decode_zeros::<W>(bytes, num_values, tail, out);
    }
    let full = packed_size(width).checked_mul(blocks);
    let raw = full.and_then(|full| full.checked_add(tail * word_size));
    let padded = full.and_then(|full| full.checked_add(if tail > 0 { packed_size(width) } else { 0 }));
    let found = Some(bytes.len());
    if found != raw && found != padded {
        return Err(CodecError::corrupt(format!(
            "expected {num_values} values packed into {width} bits, found {} bytes",
            bytes.len()
        )));
    }
    let (full, rest) = bytes.split_at_checked(full.unwrap_or(0)).unwrap_or_default();
    out.reserve(num_values.saturating_mul(word_size));
    for block in full.chunks_exact(packed_size(width)) {
        unpack_onto::<W>(width, block, BLOCK, out)?;
    }
    if tail > 0 && found == raw {
        out.extend_from_slice(rest);
        Ok(())
    } else {
        unpack_onto::<W>(width, if tail > 0 { rest } else { &[] }, tail, out)
    }
}

/// The same of values that are packed into no bits: any number of them would fit into no bytes.
fn decode_zeros<W: Word>(bytes: &[u8], num_values: usize, tail: usize, out: &mut Vec<u8>) -> Result<()> {
    let word_size = W::BITS / 8;
    if num_values > MOST_OF_NO_BITS || ![0, tail * word_size].contains(&bytes.len()) {
        return Err(CodecError::corrupt(format!(
            "expected at most {MOST_OF_NO_BITS} values packed into 0 bits, found {num_values} in {} bytes",
            bytes.len()
        )));
    }
    let end = out.len() + num_values * word_size;
    out.resize(end - bytes.len(), 0);
    out.extend_from_slice(bytes);
    Ok(())
}

/// Appends little-endian values, each packed into its lowest `packed_bits` bits (at least 1); the tail packed or raw, whichever is shorter.
pub fn encode(bits: u64, packed_bits: u64, values: &[u8], out: &mut Vec<u8>) {
    match bits {
        8 => encode_words::<u8>(packed_bits, values, out),
        16 => encode_words::<u16>(packed_bits, values, out),
        32 => encode_words::<u32>(packed_bits, values, out),
        _ => encode_words::<u64>(packed_bits, values, out),
    }
}

fn encode_words<W: Word>(packed_bits: u64, values: &[u8], out: &mut Vec<u8>) {
    let width = usize::try_from(packed_bits).unwrap_or(W::BITS).clamp(1, W::BITS);
    let word_size = W::BITS / 8;
    let mut block = [W::default(); BLOCK];
    for chunk in values.chunks(BLOCK * word_size) {
        let words = W::words(chunk);
        if words.len() < BLOCK && chunk.len() <= packed_size(width) {
            out.extend_from_slice(chunk);
            return;
        }
        if words.len() == BLOCK {
            pack_bytes::<W>(width, chunk, out);
            continue;
        }
        for (to, from) in block.iter_mut().zip(words) {
            *to = W::from_bytes(*from);
        }
        pack_block(width, block.get(..words.len()).unwrap_or_default(), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_tails_are_raw_where_that_is_no_longer() {
        let values: Vec<u8> = (0..3000_u32).flat_map(|i| (i % 500).to_le_bytes()).collect();
        for (count, bytes) in [
            (1024, 1152),
            (1024 + 288, 1152 + 1152),
            (1024 + 289, 1152 * 2),
            (100, 400),
            (3000, 1152 * 3),
            (0, 0),
        ] {
            let mut packed = Vec::new();
            encode(32, 9, &values[..count * 4], &mut packed);
            assert_eq!(packed.len(), bytes, "{count}");
            let mut out = Vec::new();
            decode(32, 9, &packed, count, &mut out).unwrap();
            assert_eq!(out, values[..count * 4], "{count}");
        }
    }

    #[test]
    fn test_zeros_may_take_no_bits() {
        for (count, bytes) in [
            (0, vec![]),
            (1, vec![]),
            (1025, vec![]),
            (1025, vec![7, 0]),
            (1 << 16, vec![]),
        ] {
            let mut out = vec![9];
            decode(16, 0, &bytes, count, &mut out).unwrap();
            let zeros = vec![0; count * 2 - bytes.len()];
            assert_eq!(out, [vec![9], zeros, bytes].concat());
        }
    }

    #[test]
    fn test_lies_are_refused() {
        let mut out = Vec::new();
        assert!(decode(64, 0, &[], usize::MAX, &mut out).is_err());
        assert!(decode(64, 0, &[], MOST_OF_NO_BITS + 1, &mut out).is_err());
        assert!(decode(16, 0, &[0; 128], 1024, &mut out).is_err());
        assert!(decode(16, 0, &[0; 1], 1025, &mut out).is_err());
        assert!(decode(16, 17, &[0; 17 * 128], 1024, &mut out).is_err());
        assert!(decode(16, 3, &[0; 383], 1024, &mut out).is_err());
        assert!(decode(16, 3, &[0; 385], 1024, &mut out).is_err());
        assert!(decode(64, 64, &[], usize::MAX, &mut out).is_err());
        assert!(decode(7, 3, &[], 0, &mut out).is_err());
        assert!(out.is_empty());
    }
}
