//! `take_ids`.

use esker_table::read::{self, Taken};
use pyo3::prelude::*;
use pyo3_arrow::PyArray;

use super::batch_stream::PyBatchStream;
use super::scan::blob_view;
use super::take::one_batch;
use crate::arrow::row_numbers;
use crate::error::Result;
use crate::signals::until_signals;
use crate::store::PyStore;
use crate::table::PyManifest;

/// Rows by id, in the requested order.
#[pyfunction]
#[pyo3(signature = (store, manifest, ids, *, columns = None, in_structs = false, blobs = "descriptions"))]
pub(crate) fn take_ids(
    py: Python<'_>,
    store: &PyStore,
    manifest: &PyManifest,
    ids: PyArray,
    columns: Option<Vec<String>>,
    in_structs: bool,
    blobs: &str,
) -> Result<PyBatchStream> {
    let wanted = Taken {
        columns: columns.as_deref(),
        in_structs,
        blobs: blob_view(blobs)?,
    };
    let ids = row_numbers(&ids)?;
    let (files, manifest) = (store.files(), manifest.0.clone());
    let taken = until_signals(py, || read::take_ids(files, &manifest, ids.values(), wanted))?;
    Ok(one_batch(taken).into())
}
