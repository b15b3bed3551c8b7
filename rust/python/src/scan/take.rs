//! `take`.

use arrow_array::RecordBatch;
use esker_table::read::{self, BatchStream, Taken};
use esker_table::Result as TableResult;
use futures::{stream, StreamExt};
use pyo3::prelude::*;
use pyo3_arrow::PyArray;

use super::batch_stream::PyBatchStream;
use super::scan::blob_view;
use crate::arrow::row_numbers;
use crate::error::Result;
use crate::signals::until_signals;
use crate::store::PyStore;
use crate::table::PyManifest;

/// Rows by number, in the requested order.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // They are Python's keywords.
#[pyo3(signature = (store, manifest, indices, *, columns = None, in_structs = false, fragment_ids = None, blobs = "descriptions"))]
pub(crate) fn take(
    py: Python<'_>,
    store: &PyStore,
    manifest: &PyManifest,
    indices: PyArray,
    columns: Option<Vec<String>>,
    in_structs: bool,
    fragment_ids: Option<Vec<u64>>,
    blobs: &str,
) -> Result<PyBatchStream> {
    let wanted = Taken {
        columns: columns.as_deref(),
        in_structs,
        blobs: blob_view(blobs)?,
    };
    let indices = row_numbers(&indices)?;
    let (files, manifest) = (store.files(), manifest.0.clone());
    let taking = || read::take(files, &manifest, indices.values(), wanted, fragment_ids.as_deref());
    let batch = until_signals(py, taking)?;
    Ok(one_batch(batch).into())
}

/// A stream of one batch.
pub(super) fn one_batch(batch: RecordBatch) -> BatchStream {
    BatchStream {
        schema: batch.schema(),
        batches: stream::iter([TableResult::Ok(batch)]).boxed(),
        groups: std::sync::Arc::default(),
    }
}
