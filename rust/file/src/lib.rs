//! One Lance data file: schema, page encodings, reader and writer.
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

pub mod error;
pub mod schema;

pub use error::{FileError, Result};
