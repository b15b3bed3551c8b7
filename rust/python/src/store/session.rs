//! `Session`.

use std::sync::Arc;

use esker_table::read::Session;
use pyo3::prelude::*;

/// The caches of some stores.
#[pyclass(name = "Session", module = "esker._native.store", frozen)]
pub(crate) struct PySession(pub(super) Arc<Session>);

#[pymethods]
impl PySession {
    #[new]
    #[pyo3(signature = (*, metadata_cache_size_bytes = None, index_cache_size_bytes = None))]
    fn new(metadata_cache_size_bytes: Option<usize>, index_cache_size_bytes: Option<usize>) -> Self {
        PySession(Session::new(metadata_cache_size_bytes, index_cache_size_bytes))
    }

    #[getter]
    fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    #[getter]
    fn metadata_bytes(&self) -> usize {
        self.0.metadata().num_bytes()
    }

    #[getter]
    fn index_bytes(&self) -> usize {
        self.0.index().num_bytes()
    }

    #[getter]
    fn num_items(&self) -> usize {
        let (metadata, index) = (self.0.metadata(), self.0.index());
        metadata.num_entries().saturating_add(index.num_entries())
    }
}
