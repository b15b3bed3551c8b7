//! `count_rows`.

use esker_table::read::{self, ScanRequest};
use pyo3::prelude::*;

use crate::error::Result;
use crate::expr::PyPredicate;
use crate::signals::until_signals;
use crate::store::PyStore;
use crate::table::PyManifest;

/// How many rows a filter keeps; without a filter, how many live rows there are.
#[pyfunction]
#[pyo3(signature = (store, manifest, *, filter = None, fragment_ids = None, use_stats = true))]
pub(crate) fn count_rows(
    py: Python<'_>,
    store: &PyStore,
    manifest: &PyManifest,
    filter: Option<&PyPredicate>,
    fragment_ids: Option<Vec<u64>>,
    use_stats: bool,
) -> Result<u64> {
    let request = ScanRequest {
        filter: filter.map(|f| f.inner().clone()),
        fragment_ids,
        ignore_statistics: !use_stats,
        ..ScanRequest::default()
    };
    let (files, manifest) = (store.files(), manifest.0.clone());
    until_signals(py, || read::count_rows(files, &manifest, &request))
}
