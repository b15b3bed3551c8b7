//! `Field`.

use std::collections::BTreeMap;

use esker_file::schema::Field;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// One column or part of a column.
#[pyclass(name = "Field", module = "esker._native.schema", frozen)]
pub(crate) struct PyField(pub(crate) Field);

/// Key-values as a dict of str to bytes.
pub(crate) fn metadata_dict<'py>(
    py: Python<'py>,
    metadata: &BTreeMap<String, Vec<u8>>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in metadata {
        dict.set_item(key, PyBytes::new(py, value))?;
    }
    Ok(dict)
}

#[pymethods]
impl PyField {
    #[getter]
    fn id(&self) -> i32 {
        self.0.id
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn logical_type(&self) -> &str {
        &self.0.logical_type
    }

    #[getter]
    fn nullable(&self) -> bool {
        self.0.nullable
    }

    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        metadata_dict(py, &self.0.metadata)
    }

    #[getter]
    fn unenforced_primary_key(&self) -> bool {
        self.0.unenforced_primary_key
    }

    #[getter]
    fn children(&self) -> Vec<PyField> {
        self.0.children.iter().cloned().map(PyField).collect()
    }

    fn __repr__(&self) -> String {
        format!(
            "Field(id={}, name={:?}, logical_type={:?})",
            self.0.id, self.0.name, self.0.logical_type
        )
    }
}
