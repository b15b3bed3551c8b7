//! `esker._native.schema`.

mod field;
#[allow(clippy::module_inception)]
mod schema;

pub(crate) use field::PyField;
pub(crate) use schema::PySchema;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyField>()?;
    module.add_class::<PySchema>()
}
