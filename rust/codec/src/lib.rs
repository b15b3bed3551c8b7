//! Encoding kernels: slices in, slices out, no Arrow and no IO.
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

pub mod ends;
pub mod error;
pub mod general;
pub mod packed_rows;

pub use error::{CodecError, Result};
