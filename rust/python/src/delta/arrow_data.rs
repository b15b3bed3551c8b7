//! `ArrowData`.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::Field;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use pyo3_arrow::ffi::to_array_pycapsules;

use crate::error::{python, Result};

/// An array or a record batch for Python, by the PyCapsule interface.
#[pyclass(name = "ArrowData", module = "esker._native.delta", frozen)]
pub(crate) struct PyArrowData(ArrayRef);

impl PyArrowData {
    pub(crate) fn array(array: ArrayRef) -> Self {
        PyArrowData(array)
    }

    pub(crate) fn batch(batch: RecordBatch) -> Self {
        PyArrowData(Arc::new(StructArray::from(batch)))
    }
}

#[pymethods]
impl PyArrowData {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> Result<Bound<'py, PyTuple>> {
        let nullable = !matches!(self.0.data_type(), arrow_schema::DataType::Struct(_));
        let field = Arc::new(Field::new("", self.0.data_type().clone(), nullable));
        to_array_pycapsules(py, field, &self.0, requested_schema).map_err(python)
    }
}
