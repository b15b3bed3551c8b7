//! `scan`.

use esker_file::schema::BlobView;
use esker_table::read::{self, OrderKey, ScanRequest};
use esker_table::TableError;
use pyo3::prelude::*;

use super::batch_stream::PyBatchStream;
use crate::error::Result;
use crate::expr::PyPredicate;
use crate::store::PyStore;
use crate::table::PyManifest;

/// Rows of a version as batches.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // They are Python's keywords.
#[pyo3(signature = (store, manifest, *, columns = None, filter = None, limit = None, offset = None, batch_size = None, fragment_ids = None, row_range = None, with_row_id = false, with_row_address = false, scan_in_order = true, include_deleted_rows = false, use_stats = true, blobs = "descriptions", order_by = Vec::new(), strict_batch_size = false, string_view = false))]
pub(crate) fn scan(
    store: &PyStore,
    manifest: &PyManifest,
    columns: Option<Vec<String>>,
    filter: Option<&PyPredicate>,
    limit: Option<u64>,
    offset: Option<u64>,
    batch_size: Option<usize>,
    fragment_ids: Option<Vec<u64>>,
    row_range: Option<(u64, u64)>,
    with_row_id: bool,
    with_row_address: bool,
    scan_in_order: bool,
    include_deleted_rows: bool,
    use_stats: bool,
    blobs: &str,
    order_by: Vec<(String, bool, bool)>,
    strict_batch_size: bool,
    string_view: bool,
) -> Result<PyBatchStream> {
    let order_by = order_by.into_iter().map(|(column, ascending, nulls_first)| OrderKey {
        column,
        ascending,
        nulls_first,
    });
    let request = ScanRequest {
        columns,
        filter: filter.map(|f| f.inner().clone()),
        limit,
        offset,
        batch_size,
        strict_batch_size,
        string_view,
        fragment_ids,
        row_range: row_range.map(|(start, end)| start..end),
        with_row_id,
        with_row_address,
        unordered: !scan_in_order,
        include_deleted_rows,
        ignore_statistics: !use_stats,
        blobs: blob_view(blobs)?,
        order_by: order_by.collect(),
    };
    Ok(read::scan(store.files(), &manifest.0, &request)?.into())
}

/// Parses the name of a [`BlobView`].
pub(super) fn blob_view(name: &str) -> Result<BlobView> {
    match name {
        "bytes" => Ok(BlobView::Bytes),
        "descriptions" => Ok(BlobView::Descriptions),
        other => Err(TableError::invalid(format!("expected blobs as bytes or descriptions, found '{other}'")).into()),
    }
}
