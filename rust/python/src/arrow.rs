//! Arrow data across the Python boundary: schemas, arrays and streams by the PyCapsule interface.

use arrow_array::{Array, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Schema};
use esker_table::TableError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::to_schema_pycapsule;
use pyo3_arrow::{PyArray, PyRecordBatch, PySchema};

use crate::error::{python, Result};

/// A schema as a capsule.
pub(crate) fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> Result<Bound<'py, PyCapsule>> {
    to_schema_pycapsule(py, schema).map_err(python)
}

/// A record batch of Python's. Nested structs with an offset are copied before they cross, or arrow-rs would read other rows of them:
/// `esker.arrow.struct_offsets`.
pub(crate) struct PyRows(RecordBatch);

impl PyRows {
    /// The rows.
    pub(crate) fn into_inner(self) -> RecordBatch {
        self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for PyRows {
    type Error = PyErr;

    fn extract(obj: Borrowed<'_, 'py, PyAny>) -> std::result::Result<Self, PyErr> {
        let schema = obj.getattr_opt("schema")?;
        let schema = schema.and_then(|schema| schema.extract::<PySchema>().ok());
        let is_nested = schema.is_some_and(|schema| {
            let fields = schema.as_ref().fields().iter();
            fields.clone().any(|field| nests_structs(field.data_type(), false))
        });
        let batch: PyRecordBatch = if is_nested {
            let module = obj.py().import("esker.arrow.struct_offsets")?;
            module.getattr("rebased_batch")?.call1((obj,))?.extract()?
        } else {
            obj.extract()?
        };
        Ok(PyRows(batch.into_inner()))
    }
}

/// Whether a struct stands anywhere below a struct or a fixed-size list.
fn nests_structs(data_type: &DataType, below: bool) -> bool {
    match data_type {
        DataType::Struct(_) if below => true,
        DataType::Struct(fields) => fields.iter().any(|field| nests_structs(field.data_type(), true)),
        DataType::FixedSizeList(item, _) => nests_structs(item.data_type(), true),
        DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => {
            nests_structs(item.data_type(), below)
        }
        _ => false,
    }
}

/// Row numbers out of an Arrow array.
pub(crate) fn row_numbers(array: &PyArray) -> Result<UInt64Array> {
    let numbers = array
        .array()
        .as_any()
        .downcast_ref::<UInt64Array>()
        .filter(|a| a.null_count() == 0);
    let numbers = numbers.ok_or_else(|| {
        TableError::invalid(format!(
            "expected row numbers as uint64 without nulls, found {}",
            array.array().data_type()
        ))
    })?;
    Ok(numbers.clone())
}
