//! The outcome of a rewrite of fragments.

use crate::fragment::Fragment;
use crate::read::TableFiles;

/// New fragments that wait to be committed, and what it took to make them.
#[derive(Debug, Clone, Default)]
pub struct RewriteOutcome {
    /// The new fragments, with id 0; together they hold the live rows of the old ones, in order.
    pub fragments: Vec<Fragment>,
    /// The staged files, relative to the table's root: orphans if the fragments are not committed.
    pub files: Vec<String>,
    /// Rows in the new fragments.
    pub rows: u64,
    /// Bytes of the new data files.
    pub bytes_written: u64,
    /// Pages that were copied as they are.
    pub pages_copied: u64,
    /// Pages that were encoded anew.
    pub pages_encoded: u64,
    /// Bytes of the copied pages.
    pub bytes_copied: u64,
}

impl RewriteOutcome {
    /// Removes the staged files of an outcome that nobody will commit.
    pub async fn discard(self, files: &TableFiles) {
        for path in &self.files {
            // Files that cannot be removed become orphans, which clean-up removes.
            let _ = files.store().delete(path).await;
        }
    }
}
