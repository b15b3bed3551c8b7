//! Graveler, lakeFS's committed storage: SSTables, ranges, metaranges, their differences and merges.
//!
//! ```text
//! commit -> metarange: a table of ranges, by their last key -> range: a table of entries, by path -> block of 4 KiB
//! ```
//!
//! Everything here is immutable and named by the hash of its content. The refs (which commit a branch points to) are managed in Python.
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

pub mod apply;
pub mod branch;
pub mod change;
pub mod change_stream;
mod cluster;
pub mod commit;
pub mod diff;
pub mod entry;
pub mod error;
mod folds;
pub mod fuzz;
pub mod id;
pub mod ident;
pub mod list;
pub mod merge;
pub mod metarange;
pub mod repack;
pub mod sorted;
pub mod sstable;
pub mod storage;
pub mod touched;
pub mod value;
mod varint;
pub mod verify;
pub mod write;

pub use error::{GravelerError, Result};
pub use id::{CommitId, TableId};

#[cfg(test)]
mod tests;
