//! `Index`.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use esker_table::index::{parse_uuid, Index, NewIndex};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::Result;

/// One segment of an index.
#[pyclass(name = "Index", module = "esker._native.table", frozen, eq, from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct PyIndex(pub(crate) Index);

#[pymethods]
impl PyIndex {
    #[new]
    #[pyo3(signature = (uuid, name, fields, dataset_version, fragment_ids, index_version, *, created_at_ms = None, base_id = None, details = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        uuid: &str,
        name: String,
        fields: Vec<i32>,
        dataset_version: u64,
        fragment_ids: Vec<u32>,
        index_version: i32,
        created_at_ms: Option<u64>,
        base_id: Option<u32>,
        details: Option<(String, Vec<u8>)>,
    ) -> Result<Self> {
        Ok(PyIndex(Index::new(NewIndex {
            uuid: parse_uuid(uuid)?,
            name,
            fields,
            dataset_version,
            fragment_ids,
            index_version,
            created_at: created_at_ms,
            base_id,
            details,
        })?))
    }

    #[staticmethod]
    fn decode(data: &[u8]) -> Result<Self> {
        Ok(PyIndex(Index::decode(&Bytes::copy_from_slice(data))?))
    }

    fn encode<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.encode())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("decode")?, (slf.get().encode(slf.py()),)))
    }

    #[getter]
    fn uuid(&self) -> String {
        self.0.uuid().map(|id| id.to_string()).unwrap_or_default()
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn fields(&self) -> Vec<i32> {
        self.0.fields().to_vec()
    }

    #[getter]
    fn dataset_version(&self) -> u64 {
        self.0.metadata().dataset_version
    }

    #[getter]
    fn fragment_ids(&self) -> Result<Option<Vec<u32>>> {
        Ok(self.0.fragment_bitmap()?.map(|ids| ids.into_iter().collect()))
    }

    #[getter]
    fn index_version(&self) -> i32 {
        self.0.metadata().index_version.unwrap_or(0)
    }

    #[getter]
    fn created_at_ms(&self) -> Option<u64> {
        self.0.metadata().created_at
    }

    #[getter]
    fn folder(&self) -> String {
        self.0.folder()
    }

    #[getter]
    fn base_id(&self) -> Option<u32> {
        self.0.metadata().base_id
    }

    #[getter]
    fn details<'py>(&self, py: Python<'py>) -> Option<(String, Bound<'py, PyBytes>)> {
        let details = self.0.metadata().index_details.as_ref()?;
        Some((details.type_url.clone(), PyBytes::new(py, &details.value)))
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.encode().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("Index({}, uuid={:?})", self.name(), self.uuid())
    }
}
