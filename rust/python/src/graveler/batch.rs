//! `Batch`.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::Field;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use pyo3_arrow::ffi::to_array_pycapsules;

use crate::arrow::schema_capsule;
use crate::error::{python, Result};

/// A record batch for Python, by the PyCapsule interface.
#[pyclass(name = "Batch", module = "esker._native.graveler", frozen)]
pub(crate) struct PyBatch(pub(crate) RecordBatch);

#[pymethods]
impl PyBatch {
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0.schema())
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> Result<Bound<'py, PyTuple>> {
        let array: ArrayRef = Arc::new(StructArray::from(self.0.clone()));
        let field = Arc::new(Field::new("", array.data_type().clone(), false));
        to_array_pycapsules(py, field, &array, requested_schema).map_err(python)
    }
}
