//! `DataFile`.

use std::hash::{DefaultHasher, Hash, Hasher};

use esker_table::fragment::DataFile;
use pyo3::prelude::*;

/// One file of a fragment.
#[pyclass(
    name = "DataFile",
    module = "esker._native.table",
    frozen,
    subclass,
    eq,
    from_py_object
)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyDataFile(pub(crate) DataFile);

#[pymethods]
impl PyDataFile {
    #[new]
    #[pyo3(signature = (path, fields = Vec::new(), column_indices = Vec::new(), file_major_version = 0, file_minor_version = 0, file_size_bytes = None, base_id = None))]
    fn new(
        path: String,
        fields: Vec<i32>,
        column_indices: Vec<i32>,
        file_major_version: u32,
        file_minor_version: u32,
        file_size_bytes: Option<u64>,
        base_id: Option<u32>,
    ) -> Self {
        PyDataFile(DataFile {
            path,
            fields,
            column_indices,
            file_major_version,
            file_minor_version,
            file_size_bytes,
            base_id,
        })
    }

    #[getter]
    fn path(&self) -> &str {
        &self.0.path
    }

    #[getter]
    fn location(&self) -> String {
        self.0.location()
    }

    #[getter]
    fn fields(&self) -> Vec<i32> {
        self.0.fields.clone()
    }

    #[getter]
    fn column_indices(&self) -> Vec<i32> {
        self.0.column_indices.clone()
    }

    #[getter]
    fn file_major_version(&self) -> u32 {
        self.0.file_major_version
    }

    #[getter]
    fn file_minor_version(&self) -> u32 {
        self.0.file_minor_version
    }

    #[getter]
    fn file_size_bytes(&self) -> Option<u64> {
        self.0.file_size_bytes
    }

    #[getter]
    fn base_id(&self) -> Option<u32> {
        self.0.base_id
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.path.hash(&mut hasher);
        self.0.fields.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!(
            "DataFile(path={:?}, fields={:?}, column_indices={:?})",
            self.0.path, self.0.fields, self.0.column_indices
        )
    }
}
