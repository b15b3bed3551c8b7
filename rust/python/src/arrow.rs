//! Arrow data across the Python boundary: schemas, arrays and streams by the PyCapsule interface.

use arrow_array::{Array, UInt64Array};
use arrow_schema::Schema;
use esker_table::TableError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::to_schema_pycapsule;
use pyo3_arrow::PyArray;

use crate::error::{python, Result};

/// A schema as a capsule.
pub(crate) fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> Result<Bound<'py, PyCapsule>> {
    to_schema_pycapsule(py, schema).map_err(python)
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
