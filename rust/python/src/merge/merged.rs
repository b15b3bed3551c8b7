//! `Merged`.

use esker_table::merge::MergeOutcome;
use esker_table::operation::Operation;
use pyo3::prelude::*;

use crate::table::PyOperation;

/// A merge that is ready to be committed.
#[pyclass(name = "Merged", module = "esker._native.merge", frozen)]
pub(crate) struct PyMerged(pub(super) MergeOutcome);

#[pymethods]
impl PyMerged {
    #[getter]
    fn operation(&self) -> PyOperation {
        PyOperation(Operation::Update(self.0.update.clone()))
    }

    #[getter]
    fn num_inserted_rows(&self) -> u64 {
        self.0.stats.num_inserted_rows
    }

    #[getter]
    fn num_updated_rows(&self) -> u64 {
        self.0.stats.num_updated_rows
    }

    #[getter]
    fn num_deleted_rows(&self) -> u64 {
        self.0.stats.num_deleted_rows
    }

    #[getter]
    fn files(&self) -> Vec<String> {
        self.0.files.clone()
    }

    #[getter]
    fn bytes_written(&self) -> u64 {
        self.0.bytes_written
    }

    #[getter]
    fn rows_scanned(&self) -> u64 {
        self.0.rows_scanned
    }

    #[getter]
    fn partitions(&self) -> usize {
        self.0.partitions
    }

    #[getter]
    fn spilled_bytes(&self) -> u64 {
        self.0.spilled_bytes
    }
}
