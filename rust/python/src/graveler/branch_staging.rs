//! `BranchStaging`.

use std::sync::Arc;

use esker_graveler::branch::{BranchStaging, BranchStore, Staged};
use pyo3::prelude::*;

use super::storage::PyStorage;
use crate::error::Result;
use crate::store::PyStore;

/// Path; and of an object that is staged its address, size, checksum and time.
type Row = (String, Option<(String, u64, String, i64)>);

/// What is written to a branch through stores, and not committed.
#[pyclass(name = "BranchStaging", module = "esker._native.graveler", frozen)]
pub(crate) struct PyBranchStaging(Arc<BranchStaging>);

#[pymethods]
impl PyBranchStaging {
    #[new]
    fn new(py: Python<'_>, storage: &PyStorage, metarange: Option<&str>, token: String) -> Result<Self> {
        let base = storage.content(py, metarange)?;
        Ok(PyBranchStaging(BranchStaging::new(storage.inner(), base, token)))
    }

    #[pyo3(signature = (uri, prefix = "", *, read_only = false))]
    fn store(&self, uri: String, prefix: &str, read_only: bool) -> Result<PyStore> {
        let store = BranchStore::new(uri, prefix, self.0.clone(), read_only)?;
        Ok(PyStore::over(Arc::new(store)))
    }

    #[pyo3(signature = (path, change = None))]
    fn stage(&self, path: String, change: Option<(String, u64, String, i64)>) {
        let staged = change.map(|(address, size, checksum, modified_us)| Staged {
            // An object of the repository lies below its root.
            elsewhere: address.starts_with('/') || address.contains("://"),
            address,
            size,
            checksum,
            modified_us,
        });
        self.0.stage(path, staged);
    }

    fn end(&self) {
        self.0.end();
    }

    fn take_fresh(&self) -> Vec<Row> {
        let fresh = self.0.take_fresh().into_iter();
        fresh
            .map(|(path, change)| {
                let said = change.map(|staged| (staged.address, staged.size, staged.checksum, staged.modified_us));
                (path, said)
            })
            .collect()
    }
}
