//! `Merged`.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use esker_graveler::merge::{Conflict, Merged};
use esker_graveler::GravelerError;
use pyo3::prelude::*;

use super::batch::PyBatch;
use super::entry_columns::{arrow, entries, fields, paths};
use super::error::graveler;
use crate::error::Result;

/// The result of a merge.
#[pyclass(name = "Merged", module = "esker._native.graveler", frozen)]
pub(crate) struct PyMerged(pub(super) Merged);

#[pymethods]
impl PyMerged {
    #[getter]
    fn metarange_id(&self) -> Option<&str> {
        self.0.metarange.as_ref()?.id().map(|id| id.as_str())
    }

    #[getter]
    fn merged(&self) -> bool {
        self.0.metarange.is_some()
    }

    #[getter]
    fn conflict_count(&self) -> u64 {
        self.0.conflict_count
    }

    fn conflicts(&self) -> Result<PyBatch> {
        conflicts(&self.0.conflicts).map(PyBatch).map_err(graveler)
    }

    #[getter]
    fn ranges_written(&self) -> u64 {
        self.0.written.as_ref().map_or(0, |written| written.ranges_written)
    }

    #[getter]
    fn ranges_reused(&self) -> u64 {
        self.0.written.as_ref().map_or(0, |written| written.ranges_reused)
    }

    #[getter]
    fn bytes_written(&self) -> u64 {
        self.0.written.as_ref().map_or(0, |written| written.bytes_written)
    }
}

fn conflicts(conflicts: &[Conflict]) -> std::result::Result<RecordBatch, GravelerError> {
    let side = |name: &str| Field::new(name, DataType::Struct(fields()), true);
    let schema = Schema::new(vec![
        Field::new("path", DataType::Utf8, false),
        side("base"),
        side("source"),
        side("dest"),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(paths(conflicts.iter().map(|conflict| conflict.key.as_slice()))?),
        Arc::new(entries(conflicts.iter().map(|conflict| conflict.base.as_deref()))?),
        Arc::new(entries(conflicts.iter().map(|conflict| conflict.source.as_deref()))?),
        Arc::new(entries(conflicts.iter().map(|conflict| conflict.dest.as_deref()))?),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).map_err(arrow)
}
