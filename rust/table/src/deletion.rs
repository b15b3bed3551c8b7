//! Deletion files: which rows of a fragment no longer count.
//!
//! | type | file | holds |
//! |---|---|---|
//! | Arrow | `_deletions/{fragment}-{read_version}-{id}.arrow` | an Arrow IPC file: one batch, one column `row_id: uint32 not null` |
//! | bitmap | `_deletions/{fragment}-{read_version}-{id}.bin` | a portable 32-bit roaring bitmap |

use std::io::Cursor;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::Array;
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, DataType};
use bytes::Bytes;
use roaring::RoaringBitmap;

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
            DeletionFileType::Arrow => decode_arrow(data, path)?,
            DeletionFileType::Bitmap => RoaringBitmap::deserialize_from(Cursor::new(data))
                .map_err(|error| TableError::corrupt(path, format!("expected a roaring bitmap: {error}")))?,
        };
        Ok(Self { rows })
    }

    /// Checks the vector against what the fragment says of it: how many rows it deletes, of how many. `path` is for errors.
    pub fn check(&self, num_deleted_rows: Option<u64>, physical_rows: Option<u64>, path: &str) -> Result<()> {
        if let Some(expected) = num_deleted_rows.filter(|expected| *expected != self.len()) {
            let message = format!("expected {expected} deleted rows as the manifest says, found {}", self.len());
            return Err(TableError::corrupt(path, message));
        }
        match (self.rows.max(), physical_rows) {
            (Some(row), Some(rows)) if u64::from(row) >= rows => {
                Err(TableError::corrupt(path, format!("expected deleted rows below {rows}, found row {row}")))
            }
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

    /// The offsets of the deleted rows.
    pub fn rows(&self) -> &RoaringBitmap {
        &self.rows
    }
}

fn decode_arrow(data: &Bytes, path: &str) -> Result<RoaringBitmap> {
    let damaged = |error: ArrowError| TableError::corrupt(path, format!("expected an Arrow IPC file: {error}"));
    let reader = FileReader::try_new(Cursor::new(data), None).map_err(damaged)?;
    if reader.num_batches() != 1 {
        return Err(TableError::corrupt(path, format!("expected one batch, found {}", reader.num_batches())));
    }
    let schema = reader.schema();
    let is_offsets = |field: &arrow_schema::Field| field.data_type() == &DataType::UInt32;
    match schema.fields().as_ref() {
        [field] if is_offsets(field) => {}
        _ => return Err(TableError::corrupt(path, format!("expected one column of type uint32, found {schema}"))),
    }
    let mut rows = RoaringBitmap::new();
    for batch in reader {
        let batch = batch.map_err(damaged)?;
        let column = batch.column(0).as_primitive_opt::<UInt32Type>();
        let Some(offsets) = column.filter(|offsets| offsets.null_count() == 0) else {
            return Err(TableError::corrupt(path, "expected row offsets, found a null"));
        };
        rows.extend(offsets.values().iter().copied());
    }
    Ok(rows)
}

#[cfg(test)]
mod tests;
