//! `string_views`.

use esker_table::read;
use pyo3::prelude::*;

use crate::arrow::PyRows;
use crate::error::Result;
use crate::expr::Batch;

/// The batch with its texts as `string_view`.
#[pyfunction]
pub(super) fn string_views(py: Python<'_>, batch: PyRows) -> Result<Batch> {
    let batch = batch.into_inner();
    let batch = py.detach(|| read::string_views(batch))?;
    Ok(Batch { batch })
}
