//! `encode_deletion_vector`, `decode_deletion_vector`, `deletion_vector_file`, `z85_text`, `read_deletion_vector`, `deletion_vector_elsewhere` and `canonical_path`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::UInt64Array;
use esker_delta::actions::DeletionVectorDescriptor;
use esker_delta::{DeletionVector, DeltaError, TableRoot};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3_arrow::PyArray;

use super::arrow_data::PyArrowData;
use super::error::raised;
use crate::error::Result;
use crate::signals::or_signal;
use crate::store::PyStore;

/// The numbers of the deleted rows of one file, ascending.
#[pyfunction]
#[pyo3(signature = (store, *, storage_type, path_or_inline_dv, offset, size_in_bytes, cardinality, path = None))]
#[allow(clippy::too_many_arguments)] // They are keywords in Python.
pub(super) fn read_deletion_vector(
    py: Python<'_>,
    store: &PyStore,
    storage_type: String,
    path_or_inline_dv: String,
    offset: Option<i64>,
    size_in_bytes: i64,
    cardinality: i64,
    path: Option<&str>,
) -> Result<PyArrowData> {
    let descriptor = DeletionVectorDescriptor {
        storage_type,
        path_or_inline_dv,
        offset,
        size_in_bytes,
        cardinality,
    };
    let store = store.store();
    let vector = or_signal(py, || async {
        match path {
            Some(path) => DeletionVector::read_file(store, path, &descriptor).await,
            None => DeletionVector::read(store, &TableRoot::new(store.uri()), &descriptor).await,
        }
    })?;
    let rows: UInt64Array = vector.map_err(raised)?.rows().collect::<Vec<u64>>().into();
    Ok(PyArrowData::array(Arc::new(rows)))
}

/// The bytes of a vector of some rows, and how many rows those are.
#[pyfunction]
pub(super) fn encode_deletion_vector<'py>(py: Python<'py>, rows: Vec<PyArray>) -> Result<(Bound<'py, PyBytes>, u64)> {
    let arrays: Vec<_> = rows.into_iter().map(|rows| rows.into_inner().0).collect();
    let encoded = py.detach(|| {
        let mut columns = Vec::with_capacity(arrays.len());
        for array in &arrays {
            let column = array.as_primitive_opt::<UInt64Type>().ok_or_else(|| {
                let found = array.data_type();
                DeltaError::InvalidArgument(format!("expected the numbers of rows as uint64, found {found}"))
            })?;
            columns.push(column);
        }
        let vector = DeletionVector::of(columns.iter().flat_map(|column| column.values().iter().copied()));
        Ok((vector.encode()?, vector.len()))
    });
    let (bytes, rows) = encoded.map_err(raised)?;
    Ok((PyBytes::new(py, &bytes), rows))
}

/// The rows of a vector's bytes, ascending.
#[pyfunction]
pub(super) fn decode_deletion_vector(py: Python<'_>, data: &[u8]) -> Result<PyArrowData> {
    let vector = py.detach(|| DeletionVector::decode(data, "deletion vector"));
    let rows: UInt64Array = vector.map_err(raised)?.rows().collect::<Vec<u64>>().into();
    Ok(PyArrowData::array(Arc::new(rows)))
}

/// The bytes of a file of vectors, and the offset of each.
#[pyfunction]
pub(super) fn deletion_vector_file<'py>(
    py: Python<'py>,
    vectors: Vec<Vec<u8>>,
) -> Result<(Bound<'py, PyBytes>, Vec<u64>)> {
    let (bytes, offsets) = py.detach(|| esker_delta::vector_file(&vectors)).map_err(raised)?;
    Ok((PyBytes::new(py, &bytes), offsets))
}

/// Bytes in Z85, filled up with zeros.
#[pyfunction]
pub(super) fn z85_text(data: &[u8]) -> String {
    esker_delta::z85_text(data)
}

/// The path of a vector's file, if it lies outside of the table at `root`.
#[pyfunction]
#[pyo3(signature = (root, *, storage_type, path_or_inline_dv))]
pub(super) fn deletion_vector_elsewhere(
    root: &str,
    storage_type: String,
    path_or_inline_dv: String,
) -> Result<Option<String>> {
    let descriptor = DeletionVectorDescriptor {
        storage_type,
        path_or_inline_dv,
        offset: None,
        size_in_bytes: 0,
        cardinality: 0,
    };
    esker_delta::place_elsewhere(&descriptor, &TableRoot::new(root)).map_err(raised)
}

/// The canonical form of a path in the log.
#[pyfunction]
pub(super) fn canonical_path(root: &str, path: &str) -> String {
    TableRoot::new(root).canonical(path).into_owned()
}
