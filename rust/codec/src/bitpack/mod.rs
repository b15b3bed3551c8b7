//! Bit packing of blocks of 1024 values in the transposed order of FastLanes.
//!
//! ```text
//! a block       BITS rows of 1024 / BITS lanes (u32: 32 rows of 32 lanes); a row is 128 bytes, side by side in the values
//! row r         values ORDER[r / 8] * 16 + (r % 8) * 128 ..   with ORDER = 0 4 2 6 1 5 3 7
//! lane l        a stream of `width` bits for each row, lowest bit first, cut into words of BITS
//! packed        word 0 of all lanes, word 1 of all lanes, ..: `width` * 128 bytes
//! ```
//!
//! All lanes of a row share word and shift, so a row is one run of vector instructions; the order makes the layout the
//! same for every word, so that narrower words fill whole vectors too.

mod block;
mod rows;
mod value;
mod word;

pub use block::{pack_block, unpack_block};
pub(crate) use block::{pack_bytes, unpack_onto};
pub use value::unpack_range;
pub use word::Word;

use crate::error::{CodecError, Result};

/// The number of values in a block.
pub const BLOCK: usize = 1024;

/// Which eighth of 128 values each group of eight rows takes. It is its own inverse.
const ORDER: [usize; 8] = [0, 4, 2, 6, 1, 5, 3, 7];

/// The bytes of a block of `width` bits a value: `width` bits of 1024 values.
pub const fn packed_size(width: usize) -> usize {
    width.saturating_mul(BLOCK / 8)
}

/// The number of bits that the largest value needs; 0 when all are 0.
pub fn bit_width<W: Word>(values: &[W]) -> usize {
    let any = values.iter().fold(W::default(), |any, value| any | *value);
    W::BITS.saturating_sub(any.leading_zeros())
}

/// Checks that a block of `width` bits a value is there, and returns its bytes.
fn checked_block<W: Word>(width: usize, packed: &[u8]) -> Result<&[u8]> {
    if width > W::BITS {
        return Err(CodecError::corrupt(format!(
            "expected values packed into at most {} bits, found a width of {width}",
            W::BITS
        )));
    }
    match packed.get(..packed_size(width)) {
        Some(block) if block.len() == packed.len() => Ok(block),
        _ => Err(CodecError::corrupt(format!(
            "expected {} bytes of 1024 values in {width} bits each, found {}",
            packed_size(width),
            packed.len()
        ))),
    }
}
