//! Reading a 0.1 file.

use std::ops::Range;

use arrow_array::ArrayRef;

use crate::container::FileTail;
use crate::error::{FileError, Result};
use crate::schema::{Field, Schema};

/// An open 0.1 file.
#[derive(Debug)]
pub(crate) struct GroupFile {
    path: String,
    schema: Schema,
    num_rows: u64,
}

/// The columns of a 0.1 file that a read wants.
#[derive(Debug, Clone)]
pub(crate) struct GroupColumns {}

impl GroupFile {
    pub(crate) async fn open(tail: FileTail) -> Result<GroupFile> {
        Err(FileError::unsupported(format!(
            "file {}: file version 0.1 (legacy) cannot be read yet; expected 2.0",
            tail.path
        )))
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(crate) fn num_rows(&self) -> u64 {
        self.num_rows
    }

    /// Finds the columns of `fields` by their ids.
    pub(crate) fn project(&self, _fields: &[Field]) -> Result<GroupColumns> {
        Ok(GroupColumns {})
    }

    /// Bytes that the columns take in the file.
    pub(crate) fn bytes_of(&self, _columns: &GroupColumns) -> Result<u64> {
        Ok(0)
    }

    /// Reads sorted, separate, non-empty `rows`: an array for each field of the projection.
    pub(crate) async fn read(&self, _columns: &GroupColumns, _rows: &[Range<u64>]) -> Result<Vec<ArrayRef>> {
        Ok(Vec::new())
    }
}
