//! `FileReferences`.

use std::sync::{Mutex, PoisonError};

use esker_table::cleanup::FileReferences;
use pyo3::prelude::*;

use crate::error::Result;
use crate::table::PyManifest;
use crate::table::PyTransaction;

/// The files that manifests and transactions refer to.
#[pyclass(name = "FileReferences", module = "esker._native.cleanup", frozen)]
pub(crate) struct PyFileReferences(Mutex<FileReferences>);

impl PyFileReferences {
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut FileReferences) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl PyFileReferences {
    #[new]
    fn new() -> Self {
        PyFileReferences(Mutex::default())
    }

    fn keep(&self, py: Python<'_>, manifest: &PyManifest) -> Result<()> {
        let manifest = manifest.0.clone();
        Ok(py.detach(|| self.with(|names| names.keep(&manifest)))?)
    }

    fn discard(&self, py: Python<'_>, manifest: &PyManifest) -> Result<()> {
        let manifest = manifest.0.clone();
        Ok(py.detach(|| self.with(|names| names.discard(&manifest)))?)
    }

    fn keep_transaction(&self, transaction: &PyTransaction) -> Result<()> {
        Ok(self.with(|names| names.keep_transaction(&transaction.0))?)
    }
}
