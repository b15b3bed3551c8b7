//! `spill_row_lineage`.

use std::collections::HashSet;

use esker_store::block_on;
use esker_table::row_ids::Spilling;
use pyo3::prelude::*;

use crate::error::Result;
use crate::store::PyStore;
use crate::table::{PyFragment, PyManifest};

/// Writes long lineage of rows that moved to files, if the table's config asks for it; nothing is visible yet.
#[pyfunction]
#[pyo3(signature = (store, manifest, fragments, moved_from))]
pub(crate) fn spill_row_lineage(
    py: Python<'_>,
    store: &PyStore,
    manifest: &PyManifest,
    fragments: Vec<PyFragment>,
    moved_from: HashSet<u64>,
) -> Result<(Vec<PyFragment>, Vec<String>)> {
    let Some(spilling) = Spilling::of(manifest.0.config())? else {
        return Ok((fragments, Vec::new()));
    };
    let fragments = fragments.into_iter().map(|fragment| fragment.0).collect();
    let spilled = py.detach(|| block_on(spilling.moved(store.store(), &manifest.0, &moved_from, fragments)))?;
    let fragments = spilled.fragments.into_iter().map(PyFragment).collect();
    Ok((fragments, spilled.files))
}
