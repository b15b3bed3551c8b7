//! `FileRows`.

use std::sync::{Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use esker_delta::{DeltaError, FileRows, RowRequest};
use pyo3::prelude::*;
use pyo3_arrow::PyArray;

use super::arrow_data::PyArrowData;
use super::error::raised;
use crate::error::Result;
use crate::store::PyStore;

/// Chosen rows of some columns of a Parquet file, batch by batch.
#[pyclass(name = "FileRows", module = "esker._native.delta", frozen)]
pub(super) struct PyFileRows(Mutex<FileRows>);

#[pymethods]
impl PyFileRows {
    #[new]
    #[pyo3(signature = (store, path, *, columns, groups, rows, batch_rows))]
    fn new(
        py: Python<'_>,
        store: &PyStore,
        path: &str,
        columns: Vec<usize>,
        groups: Vec<usize>,
        rows: PyArray,
        batch_rows: usize,
    ) -> Result<Self> {
        let (rows, _) = rows.into_inner();
        let numbers = rows.as_primitive_opt::<UInt64Type>().ok_or_else(|| {
            let found = rows.data_type();
            raised(DeltaError::InvalidArgument(format!(
                "expected the numbers of rows as uint64, found {found}"
            )))
        })?;
        let request = RowRequest {
            columns,
            groups,
            rows: numbers.values().clone(),
            batch_rows,
        };
        let opened = py.detach(|| FileRows::open(store.store(), path, &request));
        Ok(PyFileRows(Mutex::new(opened.map_err(raised)?)))
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> Result<Option<PyArrowData>> {
        let read = py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).next_batch());
        Ok(read.map_err(raised)?.map(PyArrowData::batch))
    }
}
