//! The outcome of a merge.

use crate::operation::Update;
use crate::read::TableFiles;

/// Rows that a merge touched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MergeStats {
    /// Rows of the source that were added.
    pub num_inserted_rows: u64,
    /// Rows of the table that were updated.
    pub num_updated_rows: u64,
    /// Rows of the table that were deleted.
    pub num_deleted_rows: u64,
}

/// A merge that is ready to be committed.
#[derive(Debug, Clone, Default)]
pub struct MergeOutcome {
    /// The change.
    pub update: Update,
    /// The counts of rows that it touches.
    pub stats: MergeStats,
    /// The staged files, relative to the table's root: orphans if it is not committed.
    pub files: Vec<String>,
    /// Bytes of its data files.
    pub bytes_written: u64,
    /// Rows of the table whose keys were read.
    pub rows_scanned: u64,
    /// The number of partitions in which the keys were matched.
    pub partitions: usize,
    /// Bytes of rows and keys that were spilled to disk, without the source itself.
    pub spilled_bytes: u64,
}

impl MergeOutcome {
    /// Removes the staged files of an outcome that nobody will commit.
    pub async fn discard(self, files: &TableFiles) {
        remove(files, &self.files).await;
    }
}

/// Removes staged files.
pub(super) async fn remove(files: &TableFiles, paths: &[String]) {
    for path in paths {
        // The original error is reported; files that cannot be removed become orphans, which clean-up removes.
        let _ = files.store().delete(path).await;
    }
}
