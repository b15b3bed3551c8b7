//! `merge` and `changed_rows`.

use std::sync::Arc;

use esker_store::block_on;
use esker_table::read::BatchStream;
use futures::{stream, StreamExt};
use pyo3::prelude::*;

use super::merge_request::PyMergeRequest;
use super::merge_source::PyMergeSource;
use super::merged::PyMerged;
use crate::error::Result;
use crate::scan::PyBatchStream;
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
    let merged = py.detach(|| block_on(esker_table::merge::merge(&files, &manifest, source, &request.0)))?;
    Ok(PyMerged(merged))
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
    let changed = py.detach(|| block_on(esker_table::merge::changed_rows(&files, &manifest, source, &request.0)));
    let (schema, batches) = changed?;
    let stream = BatchStream {
        schema,
        batches: stream::iter(batches.into_iter().map(Ok)).boxed(),
        groups: Arc::default(),
    };
    Ok(stream.into())
}
