//! Unpacks some values of a block without the others.

use std::ops::Range;

use super::word::mask;
use super::{checked_block, Word, BLOCK, ORDER};
use crate::error::{CodecError, Result};

/// Appends the values of `range` as little-endian bytes. Cheaper than the whole block for up to some hundred values.
pub fn unpack_range<W: Word>(width: usize, packed: &[u8], range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
    let words = W::words(checked_block::<W>(width, packed)?);
    if range.end > BLOCK || range.start > range.end {
        return Err(CodecError::corrupt(format!(
            "expected values of a block of 1024, found a range of {}..{}",
            range.start, range.end
        )));
    }
    out.reserve(range.len() * (W::BITS / 8));
    for index in range {
        out.extend_from_slice(value::<W>(width, words, index).to_bytes().as_ref());
    }
    Ok(())
}

#[inline]
fn value<W: Word>(width: usize, words: &[W::Bytes], index: usize) -> W {
    // The inverse of `rows::place`: the sixteenth of the 128 values gives the group of eight rows, the remainder is the lane.
    let sixteenth = index % 128 / W::LANES * (W::LANES / 16);
    #[allow(clippy::indexing_slicing)] // A sixteenth of 128 values is below 8.
    let row = ORDER[sixteenth % 8] * 8 + index / 128;
    let lane = index % W::LANES;
    let (word, shift) = (row * width / W::BITS, row * width % W::BITS);
    let at = |word: usize| {
        words
            .get(word * W::LANES + lane)
            .map_or(W::default(), |bytes| W::from_bytes(*bytes))
    };
    let low = at(word) >> shift;
    let value = if shift + width > W::BITS {
        low | (at(word + 1) << (W::BITS - shift))
    } else {
        low
    };
    value & mask::<W>(width)
}
