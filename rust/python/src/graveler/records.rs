//! `Records`.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::builder::BinaryBuilder;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use esker_graveler::storage::TableCursor;
use esker_graveler::value::Value;
use esker_graveler::GravelerError;
use esker_store::block_on;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::batch::PyBatch;
use super::entry_columns::arrow;
use super::error::graveler;
use crate::error::Result;

/// The stored records of one table, in batches, and its properties.
#[pyclass(name = "Records", module = "esker._native.graveler", frozen)]
pub(crate) struct PyRecords(pub(super) Mutex<TableCursor>);

#[pymethods]
impl PyRecords {
    #[getter]
    fn properties<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        let cursor = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, value) in &cursor.reader().end().properties {
            let name = String::from_utf8_lossy(name);
            found
                .set_item(name, PyBytes::new(py, value))
                .map_err(crate::error::python)?;
        }
        Ok(found)
    }

    #[getter]
    fn file_size(&self) -> u64 {
        let cursor = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cursor.reader().size()
    }

    fn next_batch(&self, py: Python<'_>, count: usize) -> Result<Option<PyBatch>> {
        let batch = py.detach(|| {
            let mut cursor = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            block_on(batch(&mut cursor, count))
        });
        Ok(batch.map_err(graveler)?.map(PyBatch))
    }
}

/// The size in bytes at which a batch is full.
const BATCH_SIZE: usize = 64 << 20;

async fn batch(cursor: &mut TableCursor, count: usize) -> std::result::Result<Option<RecordBatch>, GravelerError> {
    let (mut keys, mut identities, mut data) = (BinaryBuilder::new(), BinaryBuilder::new(), BinaryBuilder::new());
    let (mut rows, mut size) = (0, 0);
    while rows < count && size < BATCH_SIZE && cursor.advance().await? {
        let value = Value::decode(cursor.value())?;
        size += cursor.key()?.len() + cursor.value().len();
        keys.append_value(cursor.key()?);
        identities.append_value(value.identity);
        data.append_value(value.data);
        rows += 1;
    }
    if rows == 0 {
        return Ok(None);
    }
    let field = |name: &str| Field::new(name, DataType::Binary, false);
    let schema = Schema::new(vec![field("key"), field("identity"), field("data")]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(keys.finish()),
        Arc::new(identities.finish()),
        Arc::new(data.finish()),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).map(Some).map_err(arrow)
}
