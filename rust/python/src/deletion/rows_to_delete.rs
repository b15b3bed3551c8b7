//! `RowsToDelete`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use esker_store::block_on;
use esker_table::deletion::RowsToDelete;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3_arrow::PyArray;

use crate::arrow::row_numbers;
use crate::error::Result;
use crate::store::PyStore;
use crate::table::PyFragment;
use crate::table::PyManifest;

/// Rows of one version to delete.
#[pyclass(name = "RowsToDelete", module = "esker._native.deletion", frozen)]
#[derive(Default)]
pub(crate) struct PyRowsToDelete(Mutex<RowsToDelete>);

impl PyRowsToDelete {
    fn rows(&self) -> MutexGuard<'_, RowsToDelete> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyRowsToDelete {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn add(&self, py: Python<'_>, addresses: PyArray) -> Result<u64> {
        let addresses = row_numbers(&addresses)?;
        Ok(py.detach(|| self.rows().add(addresses.values())))
    }

    fn stage(
        &self,
        py: Python<'_>,
        store: &PyStore,
        manifest: &PyManifest,
    ) -> Result<(Vec<PyFragment>, Vec<u64>, u64)> {
        let (files, manifest) = (store.files(), manifest.0.clone());
        let staged = py.detach(|| {
            let rows = self.rows().clone();
            block_on(async move { rows.stage(&files, &manifest).await })
        })?;
        let updated = staged.updated.into_iter().map(PyFragment).collect();
        Ok((updated, staged.removed, staged.num_deleted))
    }

    fn encode_offsets<'py>(&self, py: Python<'py>, fragment_id: u64) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.rows().encode_offsets(fragment_id))
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        usize::try_from(py.detach(|| self.rows().len())).unwrap_or(usize::MAX)
    }
}
