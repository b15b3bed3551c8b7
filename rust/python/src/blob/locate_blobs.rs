//! `locate_blobs`.

use esker_store::block_on;
use esker_table::read::{self, LocatedBlob, RowSelection};
use esker_table::TableError;
use pyo3::prelude::*;
use pyo3_arrow::PyArray;

use super::located_blob::PyLocatedBlob;
use crate::arrow::row_numbers;
use crate::error::Result;
use crate::signals::until_signals;
use crate::store::PyStore;
use crate::table::PyManifest;

/// Parses the name of a [`RowSelection`].
fn selection(name: &str) -> Result<RowSelection> {
    match name {
        "ids" => Ok(RowSelection::Ids),
        "indices" => Ok(RowSelection::Indices),
        "addresses" => Ok(RowSelection::Addresses),
        other => Err(TableError::invalid(format!(
            "selector must be one of 'ids', 'addresses', or 'indices', got \"{other}\""
        ))
        .into()),
    }
}

/// The locations of the blobs of some rows.
pub(super) fn located(
    py: Python<'_>,
    store: &PyStore,
    manifest: &PyManifest,
    column: &str,
    rows: &PyArray,
    selector: &str,
) -> Result<Vec<LocatedBlob>> {
    let (selection, rows) = (selection(selector)?, row_numbers(rows)?);
    let (files, manifest) = (store.files(), manifest.0.clone());
    until_signals(py, || {
        read::locate_blobs(files, &manifest, column, selection, rows.values())
    })
}

/// The blobs of some rows, in the requested order; None for a null.
#[pyfunction]
#[pyo3(signature = (store, manifest, column, rows, *, selector))]
pub(crate) fn locate_blobs(
    py: Python<'_>,
    store: &PyStore,
    manifest: &PyManifest,
    column: &str,
    rows: PyArray,
    selector: &str,
) -> Result<Vec<Option<PyLocatedBlob>>> {
    let rows = located(py, store, manifest, column, &rows, selector)?;
    let store = store.store();
    let blobs = py.detach(|| {
        block_on(async {
            let mut blobs = Vec::with_capacity(rows.len());
            for row in rows {
                blobs.push(PyLocatedBlob::new(store, row).await?);
            }
            Ok::<_, esker_file::FileError>(blobs)
        })
    })?;
    Ok(blobs)
}
