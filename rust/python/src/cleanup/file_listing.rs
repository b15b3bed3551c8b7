//! `FileListing`.

use esker_table::cleanup::FileListing;
use pyo3::prelude::*;

use super::file_references::PyFileReferences;
use crate::error::Result;
use crate::signals::until_signals;
use crate::store::PyStore;

/// One orphan: kind, path, size in bytes, last change in microseconds, whether a dropped version refers to it.
type Leftover = (&'static str, String, u64, Option<i64>, bool);

/// The files of a table at one moment.
#[pyclass(name = "FileListing", module = "esker._native.cleanup", frozen)]
pub(crate) struct PyFileListing(FileListing);

#[pymethods]
impl PyFileListing {
    #[staticmethod]
    #[pyo3(signature = (store, only = None))]
    fn read(py: Python<'_>, store: &PyStore, only: Option<&str>) -> Result<Self> {
        let listing = until_signals(py, || FileListing::read(store.store(), only))?;
        Ok(PyFileListing(listing))
    }

    fn leftovers(&self, py: Python<'_>, references: &PyFileReferences) -> Result<Vec<Leftover>> {
        let found = references.with(|names| py.detach(|| self.0.leftovers(names)));
        let described = found.into_iter().map(|left| {
            (
                left.kind.name(),
                left.path,
                left.size,
                left.last_modified_us,
                left.is_dropped,
            )
        });
        Ok(described.collect())
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }
}
