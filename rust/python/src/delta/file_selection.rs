//! `FileSelection`.

use std::sync::Arc;

use esker_delta::{Selection, Snapshot};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::arrow_data::PyArrowData;
use super::error::raised;
use crate::error::{python, Result};
use crate::signals::or_signal;
use crate::store::PyStore;

/// Some files of a version.
#[pyclass(name = "FileSelection", module = "esker._native.delta", frozen)]
pub(crate) struct PyFileSelection {
    snapshot: Arc<Snapshot>,
    selection: Selection,
}

impl PyFileSelection {
    pub(super) fn new(snapshot: Arc<Snapshot>, selection: Selection) -> Self {
        PyFileSelection { snapshot, selection }
    }
}

#[pymethods]
impl PyFileSelection {
    fn __len__(&self) -> usize {
        self.selection.len()
    }

    fn paths<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>> {
        let paths = PyList::empty(py);
        for path in self.snapshot.paths(&self.selection) {
            paths.append(PyString::new(py, &path)).map_err(python)?;
        }
        Ok(paths)
    }

    fn log_paths(&self) -> Vec<String> {
        self.snapshot.log_paths(&self.selection)
    }

    fn uris<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>> {
        let uris = PyList::empty(py);
        for path in self.snapshot.paths(&self.selection) {
            uris.append(PyString::new(py, &self.snapshot.root.place(&path)))
                .map_err(python)?;
        }
        Ok(uris)
    }

    fn partitions<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyDict>>> {
        let found = self.snapshot.partitions(&self.selection).into_iter().map(|partition| {
            let values = PyDict::new(py);
            for (name, value) in partition {
                values.set_item(name, value).map_err(python)?;
            }
            Ok(values)
        });
        found.collect()
    }

    fn describe(&self, py: Python<'_>) -> Result<PyArrowData> {
        let batch = py.detach(|| self.snapshot.describe(&self.selection)).map_err(raised)?;
        Ok(PyArrowData::batch(batch))
    }

    fn statistics_texts(&self, py: Python<'_>, store: &PyStore) -> Result<Vec<Option<String>>> {
        let found = or_signal(py, || self.snapshot.statistics_texts(store.store(), &self.selection))?;
        found.map_err(raised)
    }

    #[pyo3(signature = (store, *, bounds = true))]
    fn statistics(&self, py: Python<'_>, store: &PyStore, bounds: bool) -> Result<(Vec<Vec<String>>, PyArrowData)> {
        let found = or_signal(py, || self.snapshot.statistics(store.store(), &self.selection, bounds))?;
        let (paths, batch) = found.map_err(raised)?;
        Ok((paths, PyArrowData::batch(batch)))
    }
}
