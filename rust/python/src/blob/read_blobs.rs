//! `read_blobs` and `read_blob_ranges`.

use esker_file::blob::{fetch, fetch_ranges, size_of};
use esker_table::TableError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3_arrow::PyArray;

use super::locate_blobs::located;
use crate::error::Result;
use crate::signals::{or_signal, until_signals};
use crate::store::PyStore;
use crate::table::PyManifest;

type Row<'py> = (u64, Option<Bound<'py, PyBytes>>);
type Answer<'py> = (usize, u64, Option<Bound<'py, PyBytes>>);

/// The bytes of the blobs of some rows, with the rows' addresses, in the requested order.
#[pyfunction]
#[pyo3(signature = (store, manifest, column, rows, *, selector))]
pub(crate) fn read_blobs<'py>(
    py: Python<'py>,
    store: &PyStore,
    manifest: &PyManifest,
    column: &str,
    rows: PyArray,
    selector: &str,
) -> Result<Vec<Row<'py>>> {
    let rows = located(py, store, manifest, column, &rows, selector)?;
    let (addresses, locations): (Vec<u64>, Vec<_>) = rows.into_iter().map(|row| (row.address, row.location)).unzip();
    let store = store.store();
    let blobs = or_signal(py, || fetch(store, &locations))??;
    let bytes = |blob: Option<bytes::Bytes>| blob.map(|blob| PyBytes::new(py, &blob));
    Ok(addresses.into_iter().zip(blobs.into_iter().map(bytes)).collect())
}

/// Ranges of the blobs of some rows: for each request its number, the row's address and the bytes, None for a null.
#[pyfunction]
#[pyo3(signature = (store, manifest, column, rows, ranges, *, selector))]
pub(crate) fn read_blob_ranges<'py>(
    py: Python<'py>,
    store: &PyStore,
    manifest: &PyManifest,
    column: &str,
    rows: PyArray,
    ranges: Vec<(u64, u64)>,
    selector: &str,
) -> Result<Vec<Answer<'py>>> {
    let rows = located(py, store, manifest, column, &rows, selector)?;
    let store = store.store();
    let parts = until_signals(py, || async {
        let mut wanted = Vec::with_capacity(rows.len());
        for (index, (row, (offset, length))) in rows.iter().zip(&ranges).enumerate() {
            let Some(blob) = &row.location else { continue };
            let size = size_of(store, blob).await?;
            let end = offset.checked_add(*length).filter(|end| *end <= size).ok_or_else(|| {
                TableError::invalid(format!(
                    "request {index}: expected a range within the blob's {size} bytes, found one that exceeds blob size: {length} bytes at {offset}"
                ))
            })?;
            wanted.push((&blob.object, blob.start + offset..blob.start + end));
        }
        Ok::<_, TableError>(fetch_ranges(store, &wanted).await?)
    })?;
    let mut parts = parts.into_iter();
    let answers = rows.iter().enumerate().map(|(index, row)| {
        let part = row.location.as_ref().and_then(|_| parts.next());
        (index, row.address, part.map(|part| PyBytes::new(py, &part)))
    });
    Ok(answers.collect())
}
