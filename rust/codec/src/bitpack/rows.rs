//! Packs and unpacks the rows of a block, on little-endian bytes.
//!
//! A row's word and shift depend on its number only, so a row takes a few vector instructions for each 16 or 32 of its 128 bytes,
//! whatever the width.

use super::word::{mask, ROW};
use super::{Word, ORDER};

/// A row of packed words, or of values.
pub(super) type Row = [u8; ROW];

/// The position of a row's values in the unpacked block, in rows.
#[inline(always)]
const fn place<W: Word>(row: usize) -> usize {
    #[allow(clippy::indexing_slicing)] // The remainder is below 8.
    let eighth = ORDER[row / 8 % 8];
    (eighth * 16 + row % 8 * ROW) * (W::BITS / 8) / ROW
}

/// Unpacks a block of `width` rows. Stores each of its `W::BITS` rows of values once, at its place below `W::BITS`.
#[inline(always)]
pub(super) fn unpack<W: Word>(width: usize, packed: &[Row], mut store: impl FnMut(usize, Row)) {
    let mask = mask::<W>(width);
    for row in 0..W::BITS {
        let (word, shift) = (row * width / W::BITS, row * width % W::BITS);
        let low = packed.get(word).unwrap_or(&[0; ROW]);
        let mut unpacked = [0; ROW];
        if shift + width <= W::BITS {
            for (value, low) in W::words_mut(&mut unpacked).iter_mut().zip(W::words(low)) {
                *value = ((W::from_bytes(*low) >> shift) & mask).to_bytes();
            }
        } else {
            let high = packed.get(word + 1).unwrap_or(&[0; ROW]);
            let both = W::words(low).iter().zip(W::words(high));
            for (value, (low, high)) in W::words_mut(&mut unpacked).iter_mut().zip(both) {
                let both = (W::from_bytes(*low) >> shift) | (W::from_bytes(*high) << (W::BITS - shift));
                *value = (both & mask).to_bytes();
            }
        }
        store(place::<W>(row), unpacked);
    }
}

/// Packs a block: `values` are `W::BITS` rows, `packed` `width`.
#[inline(always)]
pub(super) fn pack<W: Word>(width: usize, values: &[Row], packed: &mut [Row]) {
    let mask = mask::<W>(width);
    // The packed word that is being filled, for all lanes.
    let mut word = [0; ROW];
    let mut packed = packed.iter_mut();
    for row in 0..W::BITS {
        let Some(values) = values.get(place::<W>(row)) else {
            return;
        };
        let shift = row * width % W::BITS;
        for (word, value) in W::words_mut(&mut word).iter_mut().zip(W::words(values)) {
            *word = (W::from_bytes(*word) | ((W::from_bytes(*value) & mask) << shift)).to_bytes();
        }
        if shift + width < W::BITS {
            continue;
        }
        if let Some(packed) = packed.next() {
            *packed = word;
        }
        word = [0; ROW];
        if shift + width > W::BITS {
            for (word, value) in W::words_mut(&mut word).iter_mut().zip(W::words(values)) {
                *word = ((W::from_bytes(*value) & mask) >> (W::BITS - shift)).to_bytes();
            }
        }
    }
}
