//! `deleted_row_ids`.

use esker_table::read;
use pyo3::prelude::*;

use super::batch_stream::PyBatchStream;
use crate::error::Result;
use crate::store::PyStore;
use crate::table::PyManifest;

/// The ids of the rows of a version that a later version does not have.
#[pyfunction]
#[pyo3(signature = (store, begin, end))]
pub(crate) fn deleted_row_ids(store: &PyStore, begin: &PyManifest, end: &PyManifest) -> Result<PyBatchStream> {
    Ok(read::deleted_row_ids(store.files(), &begin.0, end.0.clone())?.into())
}
