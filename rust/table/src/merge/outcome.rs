//! What came of a merge.

use crate::operation::Update;

/// Rows that a merge touched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MergeStats {
    /// Rows of the source that were added.
    pub num_inserted_rows: u64,
    /// Rows of the table that rows of the source took the place of.
    pub num_updated_rows: u64,
    /// Rows of the table that went.
    pub num_deleted_rows: u64,
}

/// A merge that is ready to be committed.
#[derive(Debug, Clone, Default)]
pub struct MergeOutcome {
    /// The change.
    pub update: Update,
    /// Rows that it touches.
    pub stats: MergeStats,
    /// The files that it wrote, relative to the table's root: of no use if it is not committed.
    pub files: Vec<String>,
    /// Bytes of its data files.
    pub bytes_written: u64,
    /// Rows of the table whose keys were read.
    pub rows_scanned: u64,
    /// In how many parts the keys were matched, each of which fit in memory.
    pub partitions: usize,
    /// Bytes of rows and keys that went to disk in between, without the source itself.
    pub spilled_bytes: u64,
}
