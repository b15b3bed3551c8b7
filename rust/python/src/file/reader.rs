//! `FileReader`.

use arrow_array::UInt64Array;
use esker_file::batches::BatchOptions;
use esker_file::{inspect, FileReader};
use esker_store::block_on;
use esker_table::read::BatchStream;
use esker_table::TableError;
use futures::StreamExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3_arrow::PyArray;

use super::inspect::PyFileLayout;
use crate::arrow::row_numbers;
use crate::error::Result;
use crate::scan::PyBatchStream;
use crate::schema::PySchema;
use crate::store::PyStore;

/// One open data file, without a table.
#[pyclass(name = "FileReader", module = "esker._native.file", frozen)]
pub(crate) struct PyFileReader(FileReader);

impl PyFileReader {
    fn stream(
        &self,
        columns: Option<&[String]>,
        rows: Vec<std::ops::Range<u64>>,
        options: BatchOptions,
    ) -> Result<PyBatchStream> {
        let schema = match columns {
            Some(names) => self.0.schema().select(names)?,
            None => self.0.schema().clone(),
        };
        let projection = self.0.project(&schema.fields, None)?;
        let arrow = projection.schema().as_ref().clone();
        let metadata = schema.to_arrow()?.metadata().clone();
        let batches = self.0.batches(projection, rows, options)?;
        let out = std::sync::Arc::new(arrow.with_metadata(metadata));
        Ok(PyBatchStream::from(BatchStream {
            schema: out,
            batches: batches.map(|batch| batch.map_err(TableError::from)).boxed(),
            groups: std::sync::Arc::default(),
        }))
    }
}

#[pymethods]
impl PyFileReader {
    #[new]
    fn new(py: Python<'_>, store: &PyStore, path: &str) -> Result<Self> {
        let store = store.store().clone();
        Ok(PyFileReader(py.detach(|| {
            block_on(async { Ok::<_, TableError>(FileReader::open(store, path).await?) })
        })?))
    }

    #[getter]
    fn version(&self) -> String {
        self.0.version().to_string()
    }

    #[getter]
    fn num_rows(&self) -> u64 {
        self.0.num_rows()
    }

    #[getter]
    fn schema(&self) -> PySchema {
        self.0.schema().clone().into()
    }

    fn layout(&self, py: Python<'_>) -> Result<PyFileLayout> {
        Ok(PyFileLayout(py.detach(|| inspect::inspect(&self.0))?))
    }

    fn read_global_buffer<'py>(&self, py: Python<'py>, index: usize) -> Result<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| block_on(async { Ok::<_, TableError>(self.0.read_global_buffer(index).await?) }))?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[pyo3(signature = (start, num_rows, *, columns, batch_size, batch_readahead))]
    fn read_range(
        &self,
        start: u64,
        num_rows: u64,
        columns: Option<Vec<String>>,
        batch_size: u64,
        batch_readahead: usize,
    ) -> Result<PyBatchStream> {
        let rows = start..start.saturating_add(num_rows);
        let options = BatchOptions {
            batch_size,
            readahead: batch_readahead,
        };
        self.stream(columns.as_deref(), vec![rows], options)
    }

    #[pyo3(signature = (rows, *, columns, batch_size, batch_readahead))]
    fn take(
        &self,
        rows: PyArray,
        columns: Option<Vec<String>>,
        batch_size: u64,
        batch_readahead: usize,
    ) -> Result<PyBatchStream> {
        let rows: UInt64Array = row_numbers(&rows)?;
        let mut ranges: Vec<std::ops::Range<u64>> = Vec::new();
        for row in rows.values() {
            match ranges.last_mut() {
                Some(last) if last.end == *row => last.end = row.saturating_add(1),
                _ => ranges.push(*row..row.saturating_add(1)),
            }
        }
        let options = BatchOptions {
            batch_size,
            readahead: batch_readahead,
        };
        self.stream(columns.as_deref(), ranges, options)
    }
}
