//! `rewrite_fragments`.

use std::sync::Arc;

use esker_file::FileVersion;
use esker_store::block_on;
use esker_table::compact::{self, CopyMode, Pace, RewriteRequest};
use esker_table::TableError;
use pyo3::prelude::*;

use super::rewrite_outcome::PyRewriteOutcome;
use crate::error::{python, Result};
use crate::signals::stopping_at_signals;
use crate::store::PyStore;
use crate::table::PyManifest;

/// Writes the live rows of fragments, in order, to new files; nothing is visible yet.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // They are Python's keywords.
#[pyo3(signature = (store, manifest, fragment_ids, *, data_storage_version, max_rows_per_file, max_bytes_per_file, memory_limit, max_rows_per_group = 1024, target_bases = Vec::new(), copy_pages = true, page_bytes = None, batch_rows = None, threads = None, ahead_bytes = None, copied_bytes = None))]
pub(crate) fn rewrite_fragments(
    py: Python<'_>,
    store: &PyStore,
    manifest: &PyManifest,
    fragment_ids: Vec<u64>,
    data_storage_version: &str,
    max_rows_per_file: u64,
    max_bytes_per_file: u64,
    memory_limit: u64,
    max_rows_per_group: usize,
    target_bases: Vec<Option<u32>>,
    copy_pages: bool,
    page_bytes: Option<u64>,
    batch_rows: Option<u64>,
    threads: Option<usize>,
    ahead_bytes: Option<u64>,
    copied_bytes: Option<u64>,
) -> Result<PyRewriteOutcome> {
    let request = RewriteRequest {
        fragment_ids,
        version: FileVersion::parse(data_storage_version)?,
        goal: manifest.0.goal()?,
        max_rows_per_file,
        max_bytes_per_file,
        max_rows_per_group,
        memory_limit,
        target_bases,
        page_bytes,
        copy: if copy_pages { CopyMode::Allow } else { CopyMode::Never },
        batch_rows,
        pace: Pace {
            threads,
            ahead_bytes,
            copied_bytes,
        },
        stop: Arc::default(),
    };
    let stop = request.stop.clone();
    let (files, manifest) = (store.files(), manifest.0.clone());
    // The rewrite removes what it staged before it returns.
    let rewriting = || compact::rewrite_fragments(&files, &manifest, &request);
    let (outcome, interrupt) = stopping_at_signals(py, &stop, rewriting)?;
    match (outcome, interrupt) {
        (Ok(outcome), None) => Ok(PyRewriteOutcome(outcome)),
        (Err(_), Some(interrupt)) => Err(python(interrupt)),
        (Err(error), None) => Err(error.into()),
        (Ok(outcome), Some(interrupt)) => {
            // It was done before it saw the signal: nobody will get the outcome.
            py.detach(|| {
                block_on(async {
                    outcome.discard(&files).await;
                    Ok::<_, TableError>(())
                })
            })?;
            Err(python(interrupt))
        }
    }
}
