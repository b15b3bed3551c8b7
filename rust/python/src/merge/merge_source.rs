//! `MergeSource`.

use std::sync::Arc;

use esker_table::merge::MergeSource;
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatchReader;

use crate::error::{python, Result};

/// The source rows of a merge, which can be read any number of times.
#[pyclass(name = "MergeSource", module = "esker._native.merge", frozen)]
pub(crate) struct PyMergeSource(pub(super) Arc<MergeSource>);

#[pymethods]
impl PyMergeSource {
    #[new]
    #[pyo3(signature = (stream, *, memory_limit))]
    fn new(py: Python<'_>, stream: PyRecordBatchReader, memory_limit: u64) -> Result<Self> {
        let batches = stream.into_reader().map_err(python)?;
        let source = py.detach(|| MergeSource::read(batches, memory_limit))?;
        Ok(PyMergeSource(Arc::new(source)))
    }

    #[getter]
    fn num_rows(&self) -> u64 {
        self.0.num_rows()
    }

    #[getter]
    fn spilled_bytes(&self) -> u64 {
        self.0.spilled_bytes()
    }
}
