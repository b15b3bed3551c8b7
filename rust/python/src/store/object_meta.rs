//! `ObjectMeta`.

use esker_store::store::ObjectMeta;
use pyo3::prelude::*;

/// An object's metadata.
#[pyclass(name = "ObjectMeta", module = "esker._native.store", frozen)]
pub(crate) struct PyObjectMeta(pub(crate) ObjectMeta);

#[pymethods]
impl PyObjectMeta {
    #[getter]
    fn path(&self) -> &str {
        &self.0.path
    }

    #[getter]
    fn size(&self) -> u64 {
        self.0.size
    }

    #[getter]
    fn last_modified_us(&self) -> Option<i64> {
        self.0.last_modified_us
    }

    fn __repr__(&self) -> String {
        format!("ObjectMeta(path={:?}, size={})", self.0.path, self.0.size)
    }
}
