//! `read_deletion_vector`, `deletion_vector_elsewhere` and `canonical_path`.

use std::sync::Arc;

use arrow_array::UInt64Array;
use esker_delta::actions::DeletionVectorDescriptor;
use esker_delta::{DeletionVector, TableRoot};
use esker_store::block_on;
use pyo3::prelude::*;

use super::arrow_data::PyArrowData;
use super::error::raised;
use crate::error::Result;
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
    let vector = py.detach(|| {
        block_on(async {
            match path {
                Some(path) => DeletionVector::read_file(store, path, &descriptor).await,
                None => DeletionVector::read(store, &TableRoot::new(store.uri()), &descriptor).await,
            }
        })
    });
    let rows: UInt64Array = vector.map_err(raised)?.rows().collect::<Vec<u64>>().into();
    Ok(PyArrowData::array(Arc::new(rows)))
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
