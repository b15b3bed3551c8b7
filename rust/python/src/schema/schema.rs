//! `Schema`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use esker_file::schema::{Alteration, BlobView, Schema};
use esker_proto::lance::file as pb;
use esker_table::TableError;
use prost::Message;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};

use super::field::{metadata_dict, PyField};
use crate::arrow::schema_capsule;
use crate::error::Result;

/// A table's columns with their field ids.
#[pyclass(name = "Schema", module = "esker._native.schema", frozen, eq)]
#[derive(PartialEq, Eq)]
pub(crate) struct PySchema(pub(crate) Arc<Schema>);

impl From<Schema> for PySchema {
    fn from(schema: Schema) -> Self {
        PySchema(Arc::new(schema))
    }
}

impl PySchema {
    fn encode(&self) -> Vec<u8> {
        pb::Schema {
            fields: self.0.to_protos(),
            metadata: self.0.proto_metadata(),
        }
        .encode_to_vec()
    }
}

#[pymethods]
impl PySchema {
    #[staticmethod]
    #[pyo3(signature = (schema, *, first_id = 0))]
    fn from_arrow(schema: pyo3_arrow::PySchema, first_id: i64) -> Result<Self> {
        let mut schema = Schema::from_arrow(&schema.into_inner())?;
        let last = i64::try_from(schema.flat_fields().len())
            .ok()
            .and_then(|fields| first_id.checked_add(fields));
        let fits = last.is_some_and(|last| last <= i64::from(i32::MAX));
        match i32::try_from(first_id).ok().filter(|_| fits) {
            Some(first_id) => schema.assign_ids(first_id),
            None => {
                return Err(TableError::unsupported("the table has used up all 2^31 field ids; write it anew").into())
            }
        }
        Ok(schema.into())
    }

    #[pyo3(signature = (known = None))]
    fn check_column_names(&self, known: Option<&PySchema>) -> Result<()> {
        Ok(self.0.check_column_names(known.map(|known| known.0.as_ref()))?)
    }

    fn extended(&self, other: &PySchema) -> Result<Self> {
        Ok(self.0.extended(&other.0)?.into())
    }

    fn without(&self, paths: Vec<String>) -> Result<Self> {
        Ok(self.0.without(&paths)?.into())
    }

    fn altered(&self, alterations: Vec<(String, Option<String>, Option<bool>)>) -> Result<Self> {
        let alterations: Vec<Alteration> = alterations
            .into_iter()
            .map(|(path, name, nullable)| Alteration { path, name, nullable })
            .collect();
        Ok(self.0.altered(&alterations)?.into())
    }

    fn replaced(&self, path: &str, field: &PyField) -> Result<Self> {
        Ok(self.0.replaced(path, &field.0)?.into())
    }

    fn find(&self, path: &str) -> Option<PyField> {
        self.0.field_by_path(path).cloned().map(PyField)
    }

    #[staticmethod]
    fn _restore(data: &[u8]) -> Result<Self> {
        let schema = pb::Schema::decode(Bytes::copy_from_slice(data))
            .map_err(|e| TableError::corrupt("pickled schema", e.to_string()))?;
        Ok(Schema::from_protos(&schema.fields, &schema.metadata)?.into())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((
            slf.get_type().getattr("_restore")?,
            (PyBytes::new(slf.py(), &slf.get().encode()),),
        ))
    }

    fn select(&self, columns: Vec<String>) -> Result<Self> {
        if let Some(missing) = columns.iter().find(|name| self.0.field(name).is_none()) {
            return Err(TableError::invalid(format!("column '{missing}' does not exist")).into());
        }
        let fields = self
            .0
            .fields
            .iter()
            .filter(|field| columns.contains(&field.name))
            .cloned()
            .collect();
        Ok(Schema {
            fields,
            metadata: self.0.metadata.clone(),
        }
        .into())
    }

    #[getter]
    fn fields(&self) -> Vec<PyField> {
        self.0.fields.iter().cloned().map(PyField).collect()
    }

    #[getter]
    fn names(&self) -> Vec<&str> {
        self.0.fields.iter().map(|field| field.name.as_str()).collect()
    }

    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        metadata_dict(py, &self.0.metadata)
    }

    #[getter]
    fn max_field_id(&self) -> i32 {
        self.0.max_field_id()
    }

    fn described(&self) -> PySchema {
        PySchema(self.0.with_blob_view(BlobView::Located))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0.to_arrow()?)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.encode().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let names: Vec<String> = self
            .0
            .fields
            .iter()
            .map(|f| format!("{}: {}", f.name, f.logical_type))
            .collect();
        format!("Schema({})", names.join(", "))
    }
}
