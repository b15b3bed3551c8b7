//! `esker._native.expr`.

mod expression;
mod json;
mod predicate;

pub(crate) use json::Batch;
pub(crate) use predicate::PyPredicate;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPredicate>()?;
    module.add_class::<expression::PyExpression>()?;
    module.add_function(wrap_pyfunction!(json::to_jsonb, module)?)?;
    module.add_function(wrap_pyfunction!(json::to_json_text, module)?)
}
