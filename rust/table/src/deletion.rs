//! Deletion files: which rows of a fragment are deleted.
//!
//! | type | file | holds |
//! |---|---|---|
//! | Arrow | `_deletions/{fragment}-{read_version}-{id}.arrow` | an Arrow IPC file: one batch, one column `row_id: uint32 not null` |
//! | bitmap | `_deletions/{fragment}-{read_version}-{id}.bin` | a portable 32-bit roaring bitmap |

mod arrow_file;
mod encode;
mod rows_to_delete;

use std::io::Cursor;

use bytes::Bytes;
use roaring::RoaringBitmap;

use self::arrow_file::read_offsets;
pub(crate) use self::rows_to_delete::write_deletions;
pub use self::rows_to_delete::{RowsToDelete, StagedDeletions};
use crate::error::{Result, TableError};
use crate::fragment::DeletionFileType;

/// The offsets, counted in the files of one fragment, of its deleted rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeletionVector {
    rows: RoaringBitmap,
}

impl DeletionVector {
    /// Decodes the bytes of a deletion file. `path` is for errors.
    pub fn decode(file_type: DeletionFileType, data: &Bytes, path: &str) -> Result<Self> {
        let rows = match file_type {
            DeletionFileType::Arrow => read_offsets(data).map_err(|message| TableError::corrupt(path, message))?,
            DeletionFileType::Bitmap => RoaringBitmap::deserialize_from(Cursor::new(data))
                .map_err(|error| TableError::corrupt(path, format!("expected a roaring bitmap: {error}")))?,
        };
        Ok(Self { rows })
    }

    /// Checks the vector against the fragment's counts of deleted and of physical rows. `path` is for errors.
    pub fn check(&self, num_deleted_rows: Option<u64>, physical_rows: Option<u64>, path: &str) -> Result<()> {
        if let Some(expected) = num_deleted_rows.filter(|expected| *expected != self.len()) {
            let message = format!(
                "expected {expected} deleted rows as the manifest says, found {}",
                self.len()
            );
            return Err(TableError::corrupt(path, message));
        }
        match (self.rows.max(), physical_rows) {
            (Some(row), Some(rows)) if u64::from(row) >= rows => Err(TableError::corrupt(
                path,
                format!("expected deleted rows below {rows}, found row {row}"),
            )),
            _ => Ok(()),
        }
    }

    /// The number of deleted rows.
    pub fn len(&self) -> u64 {
        self.rows.len()
    }

    /// Whether no row is deleted.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether the row at `offset` is deleted.
    pub fn contains(&self, offset: u32) -> bool {
        self.rows.contains(offset)
    }

    /// About how many bytes it takes in memory.
    pub fn memory(&self) -> usize {
        self.rows.serialized_size().saturating_add(size_of::<Self>())
    }

    /// The offsets of the deleted rows.
    pub fn rows(&self) -> &RoaringBitmap {
        &self.rows
    }
}

#[cfg(test)]
mod tests;
