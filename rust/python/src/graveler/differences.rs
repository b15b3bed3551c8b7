//! `Differences`.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use esker_graveler::diff::{Diff, Difference};
use esker_graveler::GravelerError;
use esker_store::block_on;
use pyo3::prelude::*;

use super::batch::PyBatch;
use super::entry_columns::{arrow, entries, fields, paths};
use super::error::graveler;
use crate::error::Result;

/// The differences between two contents, in batches.
#[pyclass(name = "Differences", module = "esker._native.graveler", frozen)]
pub(crate) struct PyDifferences(pub(super) Mutex<Diff>);

#[pymethods]
impl PyDifferences {
    fn next_batch(&self, py: Python<'_>, count: usize) -> Result<Option<PyBatch>> {
        let batch = py.detach(|| {
            let mut diff = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let found = block_on(diff.next_batch(count))?;
            if found.is_empty() {
                return Ok(None);
            }
            batch(&found).map(Some)
        });
        Ok(batch.map_err(graveler)?.map(PyBatch))
    }
}

fn batch(found: &[Difference]) -> std::result::Result<RecordBatch, GravelerError> {
    let side = |name: &str| Field::new(name, DataType::Struct(fields()), true);
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let schema = Schema::new(vec![text("path"), text("type"), side("left"), side("right")]);
    let kinds = found
        .iter()
        .map(|difference| match (&difference.left, &difference.right) {
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "removed",
            _ => "added",
        });
    let columns: Vec<ArrayRef> = vec![
        Arc::new(paths(found.iter().map(|difference| difference.key.as_slice()))?),
        Arc::new(StringArray::from_iter_values(kinds)),
        Arc::new(entries(found.iter().map(|difference| difference.left.as_deref()))?),
        Arc::new(entries(found.iter().map(|difference| difference.right.as_deref()))?),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).map_err(arrow)
}
