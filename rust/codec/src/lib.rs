//! Encoding kernels: slices in, slices out, no Arrow and no IO; and what else cannot be written without `unsafe`.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]

#[doc(hidden)]
pub mod baseline;
pub mod bit_stream;
pub mod bitpack;
pub mod byte_stream_split;
pub mod ends;
pub mod error;
pub mod freed_memory;
pub mod fsst;
#[doc(hidden)]
pub mod fuzz;
pub mod gather;
pub mod general;
pub mod general_work;
pub mod inline_bitpack;
pub mod large_blocks;
pub mod levels;
mod lz4;
pub mod outline_bitpack;
pub mod packed_rows;
pub mod ranges;
pub mod rle;
mod word_size;

pub use error::{CodecError, Result};
