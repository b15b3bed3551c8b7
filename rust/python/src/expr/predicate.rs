//! `Predicate`.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use esker_expr::{Comparisons, Predicate};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};
use pyo3_arrow::PySchema;

use super::expression::{numbers, Values};
use crate::arrow::schema_capsule;
use crate::error::{python, Result};

/// A boolean expression over the columns of one schema.
#[pyclass(name = "Predicate", module = "esker._native.expr", frozen)]
pub(crate) struct PyPredicate {
    predicate: Predicate,
    source: Source,
    schema: SchemaRef,
}

/// What the predicate was parsed from, for pickling.
enum Source {
    Sql(String, bool),
    ArrowExpression(Vec<u8>, bool),
    Substrait(Vec<u8>),
}

/// A schema capsule, for pickling.
#[pyclass(module = "esker._native.expr", frozen)]
struct SchemaCapsule(SchemaRef);

#[pymethods]
impl SchemaCapsule {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0)
    }
}

/// A schema as a `pyarrow.Schema`, which can be pickled.
pub(super) fn picklable<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyAny>> {
    py.import("pyarrow")?
        .getattr("schema")?
        .call1((SchemaCapsule(Arc::clone(schema)),))
}

impl PyPredicate {
    /// The predicate itself.
    pub(crate) fn inner(&self) -> &Predicate {
        &self.predicate
    }
}

#[pymethods]
impl PyPredicate {
    #[staticmethod]
    #[pyo3(signature = (sql, schema, numbers_as_text = false))]
    fn parse_sql(sql: String, schema: PySchema, numbers_as_text: bool) -> Result<Self> {
        let schema = schema.into_inner();
        Ok(PyPredicate {
            predicate: Predicate::parse_sql_with(&sql, &schema, numbers(numbers_as_text))?,
            source: Source::Sql(sql, numbers_as_text),
            schema,
        })
    }

    #[staticmethod]
    fn from_substrait(data: Vec<u8>, schema: PySchema) -> Result<Self> {
        let schema = schema.into_inner();
        let predicate = Predicate::from_substrait(&data, &schema)?;
        Ok(PyPredicate {
            predicate,
            source: Source::Substrait(data),
            schema,
        })
    }

    #[staticmethod]
    #[pyo3(signature = (data, schema, as_arrow = false))]
    fn from_arrow_expression(py: Python<'_>, data: Vec<u8>, schema: PySchema, as_arrow: bool) -> Result<Self> {
        let schema = schema.into_inner();
        let comparisons = if as_arrow { Comparisons::Arrow } else { Comparisons::Sql };
        let predicate = py.detach(|| Predicate::from_arrow_expression(&data, &schema, comparisons))?;
        Ok(PyPredicate {
            predicate,
            source: Source::ArrowExpression(data, as_arrow),
            schema,
        })
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        self.predicate.columns().to_vec()
    }

    #[getter]
    fn paths(&self) -> Result<Vec<(String, Option<String>)>> {
        Ok(self.predicate.paths()?)
    }

    #[getter]
    fn implied<'py>(&self, py: Python<'py>) -> Result<Vec<(String, &'static str, Option<Bound<'py, Values>>)>> {
        let terms = self.predicate.implied()?.into_iter().map(|term| -> Result<_> {
            let values = term.values.map(|array| Bound::new(py, Values { array })).transpose();
            Ok((term.column, term.operator, values.map_err(python)?))
        });
        terms.collect()
    }

    #[getter]
    fn keeps_nan(&self) -> Result<Vec<Vec<String>>> {
        Ok(self.predicate.keeps_nan()?)
    }

    fn __str__(&self) -> String {
        self.predicate.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Predicate({:?})", self.predicate.to_string())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, this) = (slf.py(), slf.get());
        let schema = picklable(py, &this.schema)?;
        let (maker, arguments) = match &this.source {
            Source::Sql(sql, as_text) => ("parse_sql", (sql, schema, *as_text).into_pyobject(py)?),
            Source::ArrowExpression(data, as_arrow) => (
                "from_arrow_expression",
                (PyBytes::new(py, data), schema, *as_arrow).into_pyobject(py)?,
            ),
            Source::Substrait(data) => ("from_substrait", (PyBytes::new(py, data), schema).into_pyobject(py)?),
        };
        Ok((slf.get_type().getattr(maker)?, arguments))
    }
}
