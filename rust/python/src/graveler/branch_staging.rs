//! `BranchStaging`.

use std::collections::HashMap;
use std::sync::Arc;

use esker_graveler::branch::{BranchStaging, BranchStore};
use pyo3::prelude::*;

use super::staged_paths::PyStagedPaths;
use super::storage::PyStorage;
use crate::error::Result;
use crate::store::PyStore;

/// The uncommitted changes that stores of a branch wrote.
#[pyclass(name = "BranchStaging", module = "esker._native.graveler", frozen)]
pub(crate) struct PyBranchStaging(Arc<BranchStaging>);

#[pymethods]
impl PyBranchStaging {
    #[new]
    #[pyo3(signature = (storage, metarange, token, staged, *, storage_options = None))]
    fn new(
        py: Python<'_>,
        storage: &PyStorage,
        metarange: Option<&str>,
        token: String,
        staged: &PyStagedPaths,
        storage_options: Option<HashMap<String, String>>,
    ) -> Result<Self> {
        let base = storage.content(py, metarange)?;
        let options = storage_options.unwrap_or_default();
        let staging = BranchStaging::new(storage.inner(), base, token, staged.inner(), options);
        Ok(PyBranchStaging(staging))
    }

    fn rebase(&self, py: Python<'_>, storage: &PyStorage, metarange: Option<&str>) -> Result<()> {
        self.0.rebase(storage.content(py, metarange)?);
        Ok(())
    }

    #[getter]
    fn age_s(&self) -> f64 {
        self.0.age().as_secs_f64()
    }

    fn reset_age(&self) {
        self.0.reset_age();
    }

    #[pyo3(signature = (uri, prefix = "", *, read_only = false))]
    fn store(&self, uri: String, prefix: &str, read_only: bool) -> Result<PyStore> {
        let store = BranchStore::new(uri, prefix, self.0.clone(), read_only)?;
        Ok(PyStore::over(Arc::new(store)))
    }

    fn end(&self) {
        self.0.end();
    }
}
