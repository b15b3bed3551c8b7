//! `FileWriter`.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use esker_file::{FileVersion, FileWriter, Goal, WriteOptions};
use esker_store::block_on;
use esker_table::TableError;
use pyo3::prelude::*;

use crate::arrow::PyRows;
use crate::error::Result;
use crate::schema::PySchema;
use crate::store::PyStore;

/// One data file that is being written, without a table. Its lock serialises threads.
#[pyclass(name = "FileWriter", module = "esker._native.file", frozen)]
pub(crate) struct PyFileWriter(Mutex<Option<FileWriter>>);

impl PyFileWriter {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut FileWriter) -> std::result::Result<T, TableError> + Send,
    ) -> Result<T> {
        let done = py.detach(|| {
            let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            work(writer.as_mut().ok_or_else(closed)?)
        })?;
        Ok(done)
    }

    fn take(&self) -> Option<FileWriter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn closed() -> TableError {
    TableError::invalid("the file is closed, open another writer")
}

#[pymethods]
impl PyFileWriter {
    #[new]
    #[pyo3(signature = (store, path, schema, *, version, compression, page_bytes))]
    fn new(
        py: Python<'_>,
        store: &PyStore,
        path: &str,
        schema: &PySchema,
        version: &str,
        compression: &str,
        page_bytes: Option<u64>,
    ) -> Result<Self> {
        schema.0.check_file_names()?;
        let mut options = WriteOptions {
            version: FileVersion::parse(version)?,
            goal: Goal::parse(compression)?,
            prepared_blobs: true,
            ..WriteOptions::default()
        };
        if let Some(bytes) = page_bytes {
            options.page_bytes = bytes;
        }
        let writer = py.detach(|| {
            block_on(async { Ok::<_, TableError>(FileWriter::create(store.store(), path, &schema.0, options).await?) })
        })?;
        Ok(PyFileWriter(Mutex::new(Some(writer))))
    }

    fn write_batch(&self, py: Python<'_>, batch: PyRows) -> Result<()> {
        let batch = batch.into_inner();
        self.with(py, |writer| {
            block_on(async { Ok::<_, TableError>(writer.write(&batch).await?) })
        })
    }

    fn add_global_buffer(&self, py: Python<'_>, data: &[u8]) -> Result<usize> {
        let data = Bytes::copy_from_slice(data);
        self.with(py, |writer| {
            block_on(async { Ok::<_, TableError>(writer.add_global_buffer(data).await?) })
        })
    }

    fn add_schema_metadata(&self, py: Python<'_>, key: String, value: String) -> Result<()> {
        self.with(py, |writer| Ok(writer.add_schema_metadata(key, value.into_bytes())?))
    }

    fn finish(&self, py: Python<'_>) -> Result<(u64, u64)> {
        let summary = py.detach(|| {
            let writer = self.take().ok_or_else(closed)?;
            block_on(async { Ok::<_, TableError>(writer.finish().await?) })
        })?;
        Ok((summary.num_rows, summary.size))
    }

    fn abort(&self, py: Python<'_>) -> Result<()> {
        Ok(py.detach(|| match self.take() {
            Some(writer) => block_on(async { Ok::<_, TableError>(writer.abort().await?) }),
            None => Ok(()),
        })?)
    }
}

impl Drop for PyFileWriter {
    fn drop(&mut self) {
        if let Some(writer) = self.take() {
            // An error cannot be reported here; at worst a temporary file remains.
            let _: std::result::Result<(), TableError> = block_on(async { Ok(writer.abort().await?) });
        }
    }
}
