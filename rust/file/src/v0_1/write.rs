//! Writing a 0.1 file.

use arrow_array::RecordBatch;
use esker_store::store::StoreRef;

use crate::error::{FileError, Result};
use crate::schema::Schema;
use crate::writer::{FileSummary, WriteOptions};

/// A 0.1 file that is being written.
pub(crate) struct GroupWriter {
    num_rows: u64,
}

impl GroupWriter {
    pub(crate) async fn create(
        _store: &StoreRef,
        _path: &str,
        _schema: &Schema,
        _options: WriteOptions,
    ) -> Result<GroupWriter> {
        Err(FileError::unsupported(
            "data_storage_version 0.1 cannot be written yet; use 2.0",
        ))
    }

    pub(crate) async fn write(&mut self, _batch: &RecordBatch) -> Result<()> {
        Ok(())
    }

    pub(crate) fn bytes_so_far(&self) -> u64 {
        0
    }

    pub(crate) fn num_rows(&self) -> u64 {
        self.num_rows
    }

    pub(crate) async fn finish(self) -> Result<FileSummary> {
        Err(FileError::unsupported(
            "data_storage_version 0.1 cannot be written yet; use 2.0",
        ))
    }

    pub(crate) async fn abort(self) -> Result<()> {
        Ok(())
    }
}
