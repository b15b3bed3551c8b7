//! Whole blocks, row by row.

use super::word::{mask, Slot};
use super::{checked_block, packed_size, Word, BLOCK, ORDER};
use crate::error::{CodecError, Result};

/// Unpacks the 1024 values of a block.
pub fn unpack_block<W: Word>(width: usize, packed: &[u8], out: &mut [W]) -> Result<()> {
    let packed = checked_block::<W>(width, packed)?;
    if out.len() != BLOCK {
        return Err(CodecError::corrupt(format!(
            "expected room for the 1024 values of a block, found room for {}",
            out.len()
        )));
    }
    unpack_rows::<W, W>(width, W::words(packed), out);
    Ok(())
}

/// Packs the lowest `width` bits of up to 1024 values; those that are missing count as 0.
///
/// Widths above the word's own are taken as the word's own.
pub fn pack_block<W: Word>(width: usize, values: &[W], out: &mut Vec<u8>) {
    let width = width.min(W::BITS);
    let start = out.len();
    out.resize(start.saturating_add(packed_size(width)), 0);
    let packed = W::words_mut(out.get_mut(start..).unwrap_or_default());
    if values.len() >= BLOCK {
        pack_rows::<W, W>(width, values, packed);
    } else {
        let mut block = [W::default(); BLOCK];
        block.iter_mut().zip(values).for_each(|(to, from)| *to = *from);
        pack_rows::<W, W>(width, &block, packed);
    }
}

/// Appends the first `num_values` values of a block as little-endian bytes.
pub(crate) fn unpack_onto<W: Word>(width: usize, packed: &[u8], num_values: usize, out: &mut Vec<u8>) -> Result<()> {
    let num_values = num_values.min(BLOCK);
    if num_values == 0 && packed.is_empty() {
        return Ok(());
    }
    let packed = checked_block::<W>(width, packed)?;
    let (start, word_size) = (out.len(), W::BITS / 8);
    out.resize(start.saturating_add(BLOCK * word_size), 0);
    unpack_rows::<W, W::Bytes>(
        width,
        W::words(packed),
        W::words_mut(out.get_mut(start..).unwrap_or_default()),
    );
    out.truncate(start.saturating_add(num_values * word_size));
    Ok(())
}

/// The first value of a row.
#[inline(always)]
const fn row_start(row: usize) -> usize {
    #[allow(clippy::indexing_slicing)] // Rows are at most 64, so the index is below 8.
    let eighth = ORDER[(row / 8) % 8];
    eighth * 16 + (row % 8) * 128
}

#[inline(always)]
fn lanes<W: Word, S>(words: &[S], start: usize) -> &[S] {
    words.get(start..start.wrapping_add(W::LANES)).unwrap_or_default()
}

#[inline(always)]
fn lanes_mut<W: Word, S>(words: &mut [S], start: usize) -> &mut [S] {
    words.get_mut(start..start.wrapping_add(W::LANES)).unwrap_or_default()
}

/// Unpacks all rows. `packed` has `width` times `LANES` words, `out` has 1024 places.
#[inline(always)]
pub(super) fn unpack_rows<W: Word, S: Slot<W>>(width: usize, packed: &[W::Bytes], out: &mut [S]) {
    let mask = mask::<W>(width);
    if width == 0 {
        out.iter_mut().for_each(|out| out.put(W::default()));
        return;
    }
    for row in 0..W::BITS {
        let (word, shift) = (row * width / W::BITS, row * width % W::BITS);
        let low = lanes::<W, _>(packed, word * W::LANES);
        let out = lanes_mut::<W, _>(out, row_start(row));
        if shift + width <= W::BITS {
            for (out, low) in out.iter_mut().zip(low) {
                out.put((W::from_bytes(*low) >> shift) & mask);
            }
        } else {
            let high = lanes::<W, _>(packed, (word + 1) * W::LANES);
            for (out, (low, high)) in out.iter_mut().zip(low.iter().zip(high)) {
                out.put(((W::from_bytes(*low) >> shift) | (W::from_bytes(*high) << (W::BITS - shift))) & mask);
            }
        }
    }
}

/// Packs all rows into words that are zero. `values` has 1024 places, `packed` has `width` times `LANES` words.
#[inline(always)]
pub(super) fn pack_rows<W: Word, S: Slot<W>>(width: usize, values: &[S], packed: &mut [W::Bytes]) {
    let mask = mask::<W>(width);
    if width == 0 {
        return;
    }
    for row in 0..W::BITS {
        let (word, shift) = (row * width / W::BITS, row * width % W::BITS);
        let values = lanes::<W, _>(values, row_start(row));
        for (low, value) in lanes_mut::<W, _>(packed, word * W::LANES).iter_mut().zip(values) {
            *low = (W::from_bytes(*low) | ((value.take() & mask) << shift)).to_bytes();
        }
        if shift + width > W::BITS {
            for (high, value) in lanes_mut::<W, _>(packed, (word + 1) * W::LANES).iter_mut().zip(values) {
                *high = ((value.take() & mask) >> (W::BITS - shift)).to_bytes();
            }
        }
    }
}
