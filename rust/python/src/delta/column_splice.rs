//! `ColumnSplice`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use esker_delta::ColumnSplice;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::error::raised;
use crate::error::Result;
use crate::store::PyStore;

/// A copy of a Parquet file with some of its columns replaced.
#[pyclass(name = "ColumnSplice", module = "esker._native.delta", frozen)]
pub(super) struct PyColumnSplice(Mutex<ColumnSplice>);

impl PyColumnSplice {
    fn held(&self) -> MutexGuard<'_, ColumnSplice> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyColumnSplice {
    #[new]
    fn new(py: Python<'_>, store: &PyStore, path: &str) -> Result<Self> {
        let opened = py.detach(|| ColumnSplice::open(store.store(), path));
        Ok(PyColumnSplice(Mutex::new(opened.map_err(raised)?)))
    }

    #[getter]
    fn fits(&self) -> bool {
        self.held().fits()
    }

    #[getter]
    fn row_groups(&self) -> Vec<usize> {
        self.held().row_groups()
    }

    fn append<'py>(&self, py: Python<'py>, part: PyBackedBytes) -> Result<Bound<'py, PyBytes>> {
        let made = py.detach(|| self.held().append(Bytes::from_owner(part)));
        Ok(PyBytes::new(py, &made.map_err(raised)?))
    }

    fn finish<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        let made = py.detach(|| self.held().finish());
        Ok(PyBytes::new(py, &made.map_err(raised)?))
    }
}
