//! `Changes`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BinaryArray, RecordBatch};
use arrow_schema::DataType;
use esker_graveler::change::Changes;
use esker_graveler::change_stream::Batches;
use esker_graveler::entry::EntryEncoder;
use esker_graveler::value::Value;
use esker_graveler::GravelerError;
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatchReader;

use super::entry_columns::{arrow, EntryColumns};
use super::error::graveler;
use crate::error::{python, Result};

/// Rows of a stream that are encoded at a time.
const AT_ONCE: usize = 1 << 15;

/// Sorted changes of paths.
#[pyclass(name = "Changes", module = "esker._native.graveler", frozen)]
pub(crate) struct PyChanges(pub(super) Arc<Changes>);

#[pymethods]
impl PyChanges {
    #[staticmethod]
    fn of_entries(py: Python<'_>, stream: PyRecordBatchReader) -> Result<Self> {
        let batches = stream.into_reader().map_err(python)?;
        let changes = py.detach(|| {
            let mut all = Changes::new();
            for batch in batches {
                all.append(of_entries(&batch.map_err(arrow)?)?)?;
            }
            Ok::<_, GravelerError>(all)
        });
        changes.map(Arc::new).map(PyChanges).map_err(graveler)
    }

    #[staticmethod]
    fn of_records(py: Python<'_>, stream: PyRecordBatchReader) -> Result<Self> {
        let batches = stream.into_reader().map_err(python)?;
        let changes = py.detach(|| {
            let mut all = Changes::new();
            for batch in batches {
                of_records(&batch.map_err(arrow)?, &mut all)?;
            }
            Ok::<_, GravelerError>(all)
        });
        changes.map(Arc::new).map(PyChanges).map_err(graveler)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }
}

/// Converts a stream of entries to batches of changes.
pub(super) fn batches(stream: PyRecordBatchReader) -> Result<Batches> {
    let batches = stream.into_reader().map_err(python)?;
    let parts = batches.flat_map(
        |batch| -> Box<dyn Iterator<Item = std::result::Result<Changes, GravelerError>> + Send> {
            match batch {
                Ok(batch) => Box::new(
                    (0..batch.num_rows())
                        .step_by(AT_ONCE)
                        .map(move |start| of_entries(&batch.slice(start, AT_ONCE.min(batch.num_rows() - start)))),
                ),
                Err(error) => Box::new(std::iter::once(Err(arrow(error)))),
            }
        },
    );
    Ok(Box::new(parts))
}

fn of_entries(batch: &RecordBatch) -> std::result::Result<Changes, GravelerError> {
    let columns = EntryColumns::new(batch)?;
    Changes::build(columns.len(), |rows, changes| {
        let mut encoder = EntryEncoder::default();
        let mut value = Vec::new();
        for row in rows {
            let path = columns.path(row).as_bytes();
            if columns.is_deleted(row) {
                changes.push(path, None)?;
                continue;
            }
            value.clear();
            columns.encode_to(row, &mut encoder, &mut value)?;
            changes.push(path, Some(&value))?;
        }
        Ok::<_, GravelerError>(())
    })
}

fn of_records(batch: &RecordBatch, changes: &mut Changes) -> std::result::Result<(), GravelerError> {
    let column = |name: &str| -> std::result::Result<BinaryArray, GravelerError> {
        let column = batch
            .column_by_name(name)
            .filter(|column| *column.data_type() == DataType::Binary);
        let column =
            column.ok_or_else(|| GravelerError::invalid(format!("expected a column {name:?} of binary values")))?;
        Ok(column.as_binary::<i32>().clone())
    };
    let (keys, identities, data) = (column("key")?, column("identity")?, column("data")?);
    for row in 0..batch.num_rows() {
        let value = identities.is_valid(row).then(|| {
            let value = Value {
                identity: identities.value(row),
                data: data.value(row),
            };
            value.encode()
        });
        changes.push(keys.value(row), value.as_deref())?;
    }
    Ok(())
}
