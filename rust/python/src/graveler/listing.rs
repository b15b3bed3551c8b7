//! `Listing`.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use esker_graveler::list::{List, Listed};
use esker_graveler::GravelerError;
use esker_store::block_on;
use pyo3::prelude::*;

use super::batch::PyBatch;
use super::entry_columns::{arrow, entries, fields, paths};
use super::error::graveler;
use crate::error::Result;

/// A listing of a content's paths, in batches.
#[pyclass(name = "Listing", module = "esker._native.graveler", frozen)]
pub(crate) struct PyListing(pub(super) Mutex<List>);

#[pymethods]
impl PyListing {
    fn next_batch(&self, py: Python<'_>, count: usize) -> Result<Option<PyBatch>> {
        let batch = py.detach(|| {
            let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let found = block_on(list.next_batch(count))?;
            if found.is_empty() {
                return Ok(None);
            }
            batch(&found).map(Some)
        });
        Ok(batch.map_err(graveler)?.map(PyBatch))
    }
}

/// Listed paths as a batch.
pub(super) fn batch(found: &[Listed]) -> std::result::Result<RecordBatch, GravelerError> {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let schema = Schema::new(vec![
        text("path"),
        text("type"),
        Field::new("entry", DataType::Struct(fields()), true),
    ]);
    let key = |listed: &'_ Listed| match listed {
        Listed::Record(key, _) | Listed::Prefix(key) => key.clone(),
    };
    let keys: Vec<Vec<u8>> = found.iter().map(key).collect();
    let kinds = found.iter().map(|listed| match listed {
        Listed::Record(..) => "object",
        Listed::Prefix(_) => "common_prefix",
    });
    let values = found.iter().map(|listed| match listed {
        Listed::Record(_, value) => Some(value.as_ref()),
        Listed::Prefix(_) => None,
    });
    let columns: Vec<ArrayRef> = vec![
        Arc::new(paths(keys.iter().map(Vec::as_slice))?),
        Arc::new(StringArray::from_iter_values(kinds)),
        Arc::new(entries(values)?),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).map_err(arrow)
}
