//! `read_deletion_vector` and `canonical_path`.

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

/// The numbers of the rows of one file that are gone, ascending.
#[pyfunction]
#[pyo3(signature = (store, *, storage_type, path_or_inline_dv, offset, size_in_bytes, cardinality))]
pub(super) fn read_deletion_vector(
    py: Python<'_>,
    store: &PyStore,
    storage_type: String,
    path_or_inline_dv: String,
    offset: Option<i64>,
    size_in_bytes: i64,
    cardinality: i64,
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
        let root = TableRoot::new(store.uri());
        block_on(DeletionVector::read(store, &root, &descriptor))
    });
    let rows: UInt64Array = vector.map_err(raised)?.rows().collect::<Vec<u64>>().into();
    Ok(PyArrowData::array(Arc::new(rows)))
}

/// A path of the log, decoded once, in the one form that all spellings of it have.
#[pyfunction]
pub(super) fn canonical_path(root: &str, path: &str) -> String {
    TableRoot::new(root).canonical(path).into_owned()
}
