//! `to_jsonb` and `to_json_text`: batches with JSON columns, in either form.

use std::sync::Arc;

use arrow_array::{RecordBatch, StructArray};
use arrow_schema::Field;
use esker_expr::json;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use pyo3_arrow::ffi::to_array_pycapsules;

use crate::arrow::PyRows;
use crate::error::{python, Result};

/// A batch for Python, by the PyCapsule interface.
#[pyclass(module = "esker._native.expr", frozen)]
pub(crate) struct Batch {
    pub(crate) batch: RecordBatch,
}

#[pymethods]
impl Batch {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> Result<Bound<'py, PyTuple>> {
        let metadata = self.batch.schema_ref().metadata().clone();
        let rows = StructArray::from(self.batch.clone());
        let field = Field::new_struct("", rows.fields().clone(), false).with_metadata(metadata);
        to_array_pycapsules(py, Arc::new(field), &rows, requested_schema).map_err(python)
    }
}

/// The batch with its `arrow.json` columns as JSONB.
#[pyfunction]
#[pyo3(signature = (batch, first_row = 0))]
pub(super) fn to_jsonb(py: Python<'_>, batch: PyRows, first_row: usize) -> Result<Batch> {
    let batch = batch.into_inner();
    let batch = py.detach(|| json::to_jsonb(&batch, first_row))?;
    Ok(Batch { batch })
}

/// The batch with its `lance.json` columns as text.
#[pyfunction]
pub(super) fn to_json_text(py: Python<'_>, batch: PyRows) -> Result<Batch> {
    let batch = batch.into_inner();
    let batch = py.detach(|| json::to_text(&batch))?;
    Ok(Batch { batch })
}
