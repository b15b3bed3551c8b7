//! `ColumnSplice`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use esker_delta::ColumnSplice;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use super::error::raised;
use crate::error::{python, Result};
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

    #[pyo3(signature = (store, path, schema, *, only=false))]
    fn begin(&self, py: Python<'_>, store: &PyStore, path: &str, schema: PyBackedBytes, only: bool) -> Result<()> {
        let schema = Bytes::from_owner(schema);
        py.detach(|| self.held().begin(store.store(), path, &schema, only))
            .map_err(raised)
    }

    fn append(&self, py: Python<'_>, rows: usize, part: Py<PyAny>) -> Result<()> {
        let mut failed = None;
        let done = py.detach(|| {
            self.held().append(rows, |column| {
                Python::attach(|py| {
                    let made = part.call1(py, (column,));
                    let bytes = made.and_then(|made| Ok(made.extract::<PyBackedBytes>(py)?));
                    bytes.map(Bytes::from_owner).map_err(|error| failed = Some(error)).ok()
                })
            })
        });
        match failed {
            Some(error) => Err(python(error)),
            None => done.map_err(raised),
        }
    }

    fn finish(&self, py: Python<'_>) -> Result<u64> {
        py.detach(|| self.held().finish()).map_err(raised)
    }

    fn abort(&self, py: Python<'_>) -> Result<()> {
        py.detach(|| self.held().abort()).map_err(raised)
    }
}
