//! `Expression`.

use std::sync::Arc;

use arrow_schema::{Field, SchemaRef};
use esker_expr::{Expression, Numbers};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use pyo3_arrow::ffi::{to_array_pycapsules, to_schema_pycapsule};
use pyo3_arrow::{PyDataType, PySchema};

use super::predicate::picklable;
use crate::arrow::PyRows;
use crate::error::{python, Result};

/// An expression over the columns of one schema.
#[pyclass(name = "Expression", module = "esker._native.expr", frozen)]
pub(crate) struct PyExpression {
    expression: Expression,
    sql: String,
    made: Made,
    schema: SchemaRef,
}

/// How an expression was parsed.
#[derive(Clone, Copy)]
enum Made {
    Sql { numbers_as_text: bool },
    Column,
    Rule,
}

/// The meaning of numbers beside text.
pub(super) fn numbers(as_text: bool) -> Numbers {
    match as_text {
        true => Numbers::AsText,
        false => Numbers::Refused,
    }
}

/// An array for Python, by the PyCapsule interface.
#[pyclass(module = "esker._native.expr", frozen)]
pub(super) struct Values {
    pub(super) array: arrow_array::ArrayRef,
}

#[pymethods]
impl Values {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> Result<Bound<'py, PyTuple>> {
        let field = Arc::new(Field::new("", self.array.data_type().clone(), true));
        to_array_pycapsules(py, field, &self.array, requested_schema).map_err(python)
    }
}

#[pymethods]
impl PyExpression {
    #[staticmethod]
    #[pyo3(signature = (sql, schema, numbers_as_text = false))]
    fn parse_sql(sql: String, schema: PySchema, numbers_as_text: bool) -> Result<Self> {
        let schema = schema.into_inner();
        Ok(PyExpression {
            expression: Expression::parse_sql_with(&sql, &schema, numbers(numbers_as_text))?,
            sql,
            made: Made::Sql { numbers_as_text },
            schema,
        })
    }

    #[staticmethod]
    fn parse_column(sql: String, schema: PySchema) -> Result<Self> {
        let schema = schema.into_inner();
        Ok(PyExpression {
            expression: Expression::parse_column(&sql, &schema)?,
            sql,
            made: Made::Column,
            schema,
        })
    }

    #[staticmethod]
    fn parse_rule(sql: String, schema: PySchema) -> Result<Self> {
        let schema = schema.into_inner();
        Ok(PyExpression {
            expression: Expression::parse_sql_with(&sql, &schema, Numbers::AsDoubles)?,
            sql,
            made: Made::Rule,
            schema,
        })
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        self.expression.columns().to_vec()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>> {
        to_schema_pycapsule(
            py,
            Field::new("", self.expression.data_type().clone(), self.expression.is_nullable()),
        )
        .map_err(python)
    }

    #[pyo3(signature = (batch, *, data_type = None))]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        batch: PyRows,
        data_type: Option<PyDataType>,
    ) -> Result<Bound<'py, PyAny>> {
        let batch = batch.into_inner();
        let array = py.detach(|| match &data_type {
            Some(wanted) => self.expression.evaluate_as(&batch, wanted.as_ref()),
            None => self.expression.evaluate(&batch),
        })?;
        Ok(Bound::new(py, Values { array }).map_err(python)?.into_any())
    }

    fn __str__(&self) -> String {
        self.expression.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Expression({:?})", self.expression.to_string())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (this, py) = (slf.get(), slf.py());
        let schema = picklable(py, &this.schema)?;
        let (maker, arguments) = match this.made {
            Made::Sql { numbers_as_text } => ("parse_sql", (&this.sql, schema, numbers_as_text).into_pyobject(py)?),
            Made::Column => ("parse_column", (&this.sql, schema).into_pyobject(py)?),
            Made::Rule => ("parse_rule", (&this.sql, schema).into_pyobject(py)?),
        };
        Ok((slf.get_type().getattr(maker)?, arguments))
    }
}
