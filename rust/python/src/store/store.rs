//! `Store`.

use std::collections::HashMap;
use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use esker_store::store::PutOutcome;
use esker_store::{block_on, Mounts, StoreRef};
use esker_table::read::{Session, TableFiles};
use esker_table::TableError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::io_stats::PyIoStats;
use super::listed_objects::PyListedObjects;
use super::object_meta::PyObjectMeta;
use super::object_writer::PyObjectWriter;
use super::session::PySession;
use crate::error::{NativeError, Result};
use crate::signals::until_signals;

/// The objects under one root.
#[pyclass(name = "Store", module = "esker._native.store", frozen, subclass)]
pub(crate) struct PyStore {
    files: RwLock<Arc<TableFiles>>,
    root: StoreRef,
    mounts: Arc<Mounts>,
    uri: String,
    options: HashMap<String, String>,
    durable: bool,
    /// Whether the URI alone says which bytes lie there, so that other handles may share what was read.
    is_plain: bool,
}

impl PyStore {
    /// The cache of the table's open files.
    pub(crate) fn files(&self) -> Arc<TableFiles> {
        self.files.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A handle to a store without a URI. It cannot be pickled.
    pub(crate) fn over(store: StoreRef) -> Self {
        PyStore::open(store, String::new(), HashMap::new(), true, false)
    }

    fn open(root: StoreRef, uri: String, options: HashMap<String, String>, durable: bool, is_plain: bool) -> Self {
        let mounts = Arc::new(Mounts::new(root));
        let root: StoreRef = mounts.clone();
        let place = is_plain.then(|| place_of(&uri, &options));
        let files = TableFiles::within(root.clone(), Session::new(None, None), place.as_deref());
        PyStore {
            files: RwLock::new(Arc::new(files)),
            root,
            mounts,
            uri,
            options,
            durable,
            is_plain,
        }
    }

    /// The store itself.
    pub(crate) fn store(&self) -> &StoreRef {
        &self.root
    }

    /// Reads. What has to wait for a network is given up at a signal, such as Ctrl-C.
    fn read<T: Send, F: Future<Output = esker_store::Result<T>>>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> F + Send,
    ) -> Result<T> {
        if self.store().is_far() {
            return until_signals(py, || async { Ok(work().await?) });
        }
        Ok(py.detach(|| block_on(work()))?)
    }
}

/// What tells a place from others in a session: the URI, and the options that it was opened with.
fn place_of(uri: &str, options: &HashMap<String, String>) -> String {
    let mut options: Vec<_> = options.iter().collect();
    options.sort_unstable();
    format!("{uri:?} {options:?}")
}

#[pymethods]
impl PyStore {
    #[new]
    #[pyo3(signature = (uri, *, storage_options = None, durable = true, over = None))]
    fn new(
        py: Python<'_>,
        uri: String,
        storage_options: Option<HashMap<String, String>>,
        durable: bool,
        over: Option<&PyStore>,
    ) -> Result<Self> {
        let options = storage_options.unwrap_or_default();
        if let Some(other) = over {
            return Ok(PyStore::open(other.store().clone(), uri, options, durable, false));
        }
        // Opening may request a bucket's region.
        let store = py.detach(|| esker_store::open(&uri, &options, durable))?;
        Ok(PyStore::open(store, uri, options, durable, true))
    }

    #[staticmethod]
    fn _restore(py: Python<'_>, uri: String, options: HashMap<String, String>, durable: bool) -> Result<Self> {
        PyStore::new(py, uri, Some(options), durable, None)
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (String, HashMap<String, String>, bool))> {
        let restore = slf.get_type().getattr("_restore")?;
        let this = slf.get();
        if this.uri.is_empty() {
            let error = TableError::unsupported("a store that was not opened by its URI cannot be pickled");
            return Err(NativeError::from(error).into());
        }
        Ok((restore, (this.uri.clone(), this.options.clone(), this.durable)))
    }

    #[getter]
    fn uri(&self) -> &str {
        self.store().uri()
    }

    fn join(&self, session: &PySession) {
        let place = self.is_plain.then(|| place_of(&self.uri, &self.options));
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(files.session(), &session.0) {
            *files = Arc::new(TableFiles::within(
                self.root.clone(),
                session.0.clone(),
                place.as_deref(),
            ));
        }
    }

    #[getter]
    fn session(&self) -> PySession {
        PySession(self.files().session().clone())
    }

    fn copy(&self, py: Python<'_>, path: &str, to: &PyStore, target: &str) -> Result<u64> {
        Ok(py.detach(|| block_on(esker_store::copy(&**self.store(), path, &**to.store(), target)))?)
    }

    fn mount(&self, id: u32, declared: &str, store: &PyStore, holds_data_alone: bool) -> Result<()> {
        Ok(self
            .mounts
            .mount(id, declared, store.store().clone(), holds_data_alone)?)
    }

    fn mounted(&self, id: u32) -> Option<(String, bool)> {
        self.mounts.mounted(id)
    }

    fn get<'py>(&self, py: Python<'py>, path: &str) -> Result<Bound<'py, PyBytes>> {
        let bytes = self.read(py, || self.store().get(path))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn get_ranges<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        ranges: Vec<(u64, u64)>,
    ) -> Result<Vec<Bound<'py, PyBytes>>> {
        let ranges: Vec<Range<u64>> = ranges.into_iter().map(|(start, end)| start..end).collect();
        let parts = self.read(py, || self.store().get_ranges(path, &ranges))?;
        Ok(parts.iter().map(|part| PyBytes::new(py, part)).collect())
    }

    fn head(&self, py: Python<'_>, path: &str) -> Result<PyObjectMeta> {
        Ok(PyObjectMeta(self.read(py, || self.store().head(path))?))
    }

    #[pyo3(signature = (path, data, *, synced = true))]
    fn put(&self, py: Python<'_>, path: &str, data: PyBackedBytes, synced: bool) -> Result<()> {
        let data = Bytes::from_owner(data);
        Ok(py.detach(|| match synced {
            true => block_on(self.store().put(path, data)),
            false => block_on(self.store().put_unsynced(path, data)),
        })?)
    }

    fn writer(&self, py: Python<'_>, path: &str) -> Result<PyObjectWriter> {
        Ok(PyObjectWriter::over(py.detach(|| block_on(self.store().writer(path)))?))
    }

    fn put_if_absent(&self, py: Python<'_>, path: &str, data: PyBackedBytes) -> Result<bool> {
        let data = Bytes::from_owner(data);
        let outcome = py.detach(|| block_on(self.store().put_if_absent(path, data)))?;
        Ok(outcome == PutOutcome::Created)
    }

    #[pyo3(signature = (prefix = ""))]
    fn list(&self, py: Python<'_>, prefix: &str) -> Result<Vec<PyObjectMeta>> {
        let found = self.read(py, || self.store().list(prefix))?;
        Ok(found.into_iter().map(PyObjectMeta).collect())
    }

    #[pyo3(signature = (prefix = ""))]
    fn list_batches(&self, py: Python<'_>, prefix: &str) -> Result<PyListedObjects> {
        Ok(py.detach(|| PyListedObjects::start(self.store().clone(), prefix))?)
    }

    #[pyo3(signature = (prefix = ""))]
    fn list_paths(&self, py: Python<'_>, prefix: &str) -> Result<Vec<String>> {
        self.read(py, || self.store().list_paths(prefix))
    }

    #[pyo3(signature = (prefix = ""))]
    fn list_folders(&self, py: Python<'_>, prefix: &str) -> Result<Vec<String>> {
        self.read(py, || self.store().list_folders(prefix))
    }

    fn list_first(&self, py: Python<'_>, prefix: &str, count: usize) -> Result<(Vec<String>, bool)> {
        let found = self.read(py, || self.store().list_first(prefix, count))?;
        Ok((found.paths, found.complete))
    }

    fn list_starting(&self, py: Python<'_>, prefix: &str, start: &str) -> Result<Vec<String>> {
        self.read(py, || self.store().list_starting(prefix, start))
    }

    fn delete(&self, py: Python<'_>, path: &str) -> Result<()> {
        Ok(py.detach(|| block_on(self.store().delete(path)))?)
    }

    fn delete_all(&self, py: Python<'_>, paths: Vec<String>) -> Result<()> {
        Ok(py.detach(|| block_on(self.store().delete_all(&paths)))?)
    }

    #[pyo3(signature = (prefix = ""))]
    fn list_unfinished(&self, py: Python<'_>, prefix: &str) -> Result<Vec<PyObjectMeta>> {
        let found = self.read(py, || self.store().list_unfinished(prefix))?;
        Ok(found.into_iter().map(PyObjectMeta).collect())
    }

    fn delete_unfinished(&self, py: Python<'_>, path: &str) -> Result<()> {
        Ok(py.detach(|| block_on(self.store().delete_unfinished(path)))?)
    }

    fn io_stats(&self) -> PyIoStats {
        PyIoStats(self.mounts.take_stats())
    }

    fn io_stats_snapshot(&self) -> PyIoStats {
        PyIoStats(self.mounts.peek_stats())
    }

    fn __repr__(&self) -> String {
        format!("Store({:?})", self.uri())
    }
}
