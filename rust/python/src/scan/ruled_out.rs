//! `ruled_out`.

use esker_store::block_on;
use esker_table::read::{self, ScanRequest};
use pyo3::prelude::*;

use crate::error::Result;
use crate::expr::PyPredicate;
use crate::store::PyStore;
use crate::table::PyManifest;

/// How many groups of rows have statistics, and how many of them a filter rules out.
#[pyfunction]
#[pyo3(signature = (store, manifest, filter, *, fragment_ids = None))]
pub(crate) fn ruled_out(
    py: Python<'_>,
    store: &PyStore,
    manifest: &PyManifest,
    filter: &PyPredicate,
    fragment_ids: Option<Vec<u64>>,
) -> Result<(u64, u64)> {
    let request = ScanRequest {
        columns: Some(Vec::new()),
        filter: Some(filter.inner().clone()),
        fragment_ids,
        ..ScanRequest::default()
    };
    let (files, manifest) = (store.files(), manifest.0.clone());
    let groups = py.detach(|| block_on(read::ruled_out(files, &manifest, &request)))?;
    Ok((groups.seen(), groups.skipped()))
}
