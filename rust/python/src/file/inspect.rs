//! `inspect` and what it returns.

use std::ops::Range;

use esker_file::inspect::{self as layout, ColumnLayout, FileLayout, PageLayout};
use esker_file::FileReader;
use esker_store::block_on;
use esker_table::TableError;
use pyo3::prelude::*;

use crate::error::Result;
use crate::store::PyStore;

/// One page of a column.
#[pyclass(name = "PageLayout", module = "esker._native.file", frozen)]
pub(crate) struct PyPageLayout(PageLayout);

#[pymethods]
impl PyPageLayout {
    #[getter]
    fn first_value(&self) -> u64 {
        self.0.first_value
    }

    #[getter]
    fn num_values(&self) -> u64 {
        self.0.num_values
    }

    #[getter]
    fn encoding(&self) -> &str {
        &self.0.encoding
    }

    #[getter]
    fn buffers(&self) -> Vec<(u64, u64)> {
        sizes(&self.0.buffers)
    }
}

/// One column of a file.
#[pyclass(name = "ColumnLayout", module = "esker._native.file", frozen)]
pub(crate) struct PyColumnLayout(ColumnLayout);

#[pymethods]
impl PyColumnLayout {
    #[getter]
    fn index(&self) -> usize {
        self.0.index
    }

    #[getter]
    fn field(&self) -> &str {
        &self.0.field
    }

    #[getter]
    fn logical_type(&self) -> &str {
        &self.0.logical_type
    }

    #[getter]
    fn pages(&self) -> Vec<PyPageLayout> {
        self.0.pages.iter().cloned().map(PyPageLayout).collect()
    }

    #[getter]
    fn buffers(&self) -> Vec<(u64, u64)> {
        sizes(&self.0.buffers)
    }

    #[getter]
    fn num_bytes(&self) -> u64 {
        self.0.bytes
    }
}

/// One file.
#[pyclass(name = "FileLayout", module = "esker._native.file", frozen)]
pub(crate) struct PyFileLayout(pub(super) FileLayout);

#[pymethods]
impl PyFileLayout {
    #[getter]
    fn path(&self) -> &str {
        &self.0.path
    }

    #[getter]
    fn size(&self) -> u64 {
        self.0.size
    }

    #[getter]
    fn version(&self) -> &str {
        &self.0.version
    }

    #[getter]
    fn num_rows(&self) -> u64 {
        self.0.num_rows
    }

    #[getter]
    fn columns(&self) -> Vec<PyColumnLayout> {
        self.0.columns.iter().cloned().map(PyColumnLayout).collect()
    }

    #[getter]
    fn global_buffers(&self) -> Vec<(u64, u64)> {
        sizes(&self.0.global_buffers)
    }

    #[getter]
    fn data_bytes(&self) -> u64 {
        self.0.data_bytes
    }

    #[getter]
    fn column_metadata_bytes(&self) -> u64 {
        self.0.column_metadata_bytes
    }

    #[getter]
    fn global_buffer_bytes(&self) -> u64 {
        self.0.global_buffer_bytes
    }
}

/// Position and size of each buffer.
fn sizes(buffers: &[Range<u64>]) -> Vec<(u64, u64)> {
    buffers
        .iter()
        .map(|b| (b.start, b.end.saturating_sub(b.start)))
        .collect()
}

/// The layout of a data file.
#[pyfunction]
pub(crate) fn inspect(py: Python<'_>, store: &PyStore, path: &str) -> Result<PyFileLayout> {
    let found = py.detach(|| {
        block_on(async {
            let reader = FileReader::open(store.store().clone(), path).await?;
            Ok::<_, TableError>(layout::inspect(&reader)?)
        })
    })?;
    Ok(PyFileLayout(found))
}

/// The bytes of a column's values without any encoding.
#[pyfunction]
pub(crate) fn plain_bytes(py: Python<'_>, store: &PyStore, path: &str, column: usize) -> Result<Option<u64>> {
    let found = py.detach(|| {
        block_on(async {
            let reader = FileReader::open(store.store().clone(), path).await?;
            Ok::<_, TableError>(layout::plain_bytes(&reader, column).await?)
        })
    })?;
    Ok(found)
}
