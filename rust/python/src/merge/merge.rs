//! `merge` and `changed_rows`.

use std::sync::Arc;

use esker_store::block_on;
use esker_table::merge::MergeRequest;
use esker_table::read::BatchStream;
use esker_table::TableError;
use futures::{stream, StreamExt};
use pyo3::prelude::*;

use super::merge_request::PyMergeRequest;
use super::merge_source::PyMergeSource;
use super::merged::PyMerged;
use crate::error::{python, Result};
use crate::scan::PyBatchStream;
use crate::signals::stopping_at_signals;
use crate::store::PyStore;
use crate::table::PyManifest;

/// Merges rows into a version of a table; nothing is visible yet.
#[pyfunction]
#[pyo3(signature = (store, manifest, source, request))]
pub(crate) fn merge(
    py: Python<'_>,
    store: &PyStore,
    manifest: &PyManifest,
    source: &PyMergeSource,
    request: &PyMergeRequest,
) -> Result<PyMerged> {
    let (files, manifest, source) = (store.files(), manifest.0.clone(), source.0.clone());
    let request = once(&request.0);
    // The merge removes what it staged before it returns.
    let merging = || esker_table::merge::merge(&files, &manifest, source, &request);
    match stopping_at_signals(py, &request.stop, merging)? {
        (Ok(merged), None) => Ok(PyMerged(merged)),
        (Err(error), None) => Err(error.into()),
        (Err(_), Some(signal)) => Err(python(signal)),
        (Ok(merged), Some(signal)) => {
            // It was done before it saw the signal: nobody will get the outcome.
            py.detach(|| {
                block_on(async {
                    merged.discard(&files).await;
                    Ok::<_, TableError>(())
                })
            })?;
            Err(python(signal))
        }
    }
}

/// The same request, to be stopped by itself.
fn once(request: &MergeRequest) -> MergeRequest {
    MergeRequest {
        stop: Arc::default(),
        ..request.clone()
    }
}

/// The rows of a source that match rows of a version, with the addresses of those.
#[pyfunction]
#[pyo3(signature = (store, manifest, source, request))]
pub(crate) fn changed_rows(
    py: Python<'_>,
    store: &PyStore,
    manifest: &PyManifest,
    source: &PyMergeSource,
    request: &PyMergeRequest,
) -> Result<PyBatchStream> {
    let (files, manifest, source) = (store.files(), manifest.0.clone(), source.0.clone());
    let request = once(&request.0);
    let changing = || esker_table::merge::changed_rows(&files, &manifest, source, &request);
    let (schema, batches) = match stopping_at_signals(py, &request.stop, changing)? {
        (_, Some(signal)) => return Err(python(signal)),
        (changed, None) => changed?,
    };
    let stream = BatchStream {
        schema,
        batches: stream::iter(batches.into_iter().map(Ok)).boxed(),
        groups: Arc::default(),
    };
    Ok(stream.into())
}
