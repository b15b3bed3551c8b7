//! `RewriteOutcome`.

use esker_table::compact::RewriteOutcome;
use pyo3::prelude::*;

use crate::table::PyFragment;

/// New fragments that wait to be committed.
#[pyclass(name = "RewriteOutcome", module = "esker._native.compaction", frozen)]
pub(crate) struct PyRewriteOutcome(pub(super) RewriteOutcome);

#[pymethods]
impl PyRewriteOutcome {
    #[getter]
    fn fragments(&self) -> Vec<PyFragment> {
        self.0.fragments.iter().cloned().map(PyFragment).collect()
    }

    #[getter]
    fn files(&self) -> Vec<String> {
        self.0.files.clone()
    }

    #[getter]
    fn num_rows(&self) -> u64 {
        self.0.rows
    }

    #[getter]
    fn bytes_written(&self) -> u64 {
        self.0.bytes_written
    }

    #[getter]
    fn pages_copied(&self) -> u64 {
        self.0.pages_copied
    }

    #[getter]
    fn pages_encoded(&self) -> u64 {
        self.0.pages_encoded
    }

    #[getter]
    fn bytes_copied(&self) -> u64 {
        self.0.bytes_copied
    }
}
