//! Joins of a source's rows with a table's by key, for the merges of all table formats.
//!
//! ```text
//! source: any stream -> held in memory, or spilled to disk if it is larger than the limit
//!    | its keys: a hash table, of all rows at once, or of a partition at a time if they are larger than the limit
//! table: keys, a batch at a time, looked up -> pairs of rows that match
//! ```
//!
//! The crate knows neither formats nor files: a table hands in batches, and finds its rows again by what it numbered them with.
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

mod error;
mod join;
mod key_table;
mod keys;
mod partitions;
mod quota;
mod source;
mod spill;

pub use error::{MergeError, Result};
pub use join::{KeyJoin, Matches};
pub use key_table::KeyTable;
pub use keys::{null_keys, Key, KeyEncoder, Keys};
pub use partitions::{part_rows, RowPartitions, Waiting};
pub use quota::DiskQuota;
pub use source::{bytes_of, spill_folder, MergeSource};
pub use spill::Spill;

#[cfg(test)]
mod tests;
