//! `esker._native.deletion`.

mod rows_to_delete;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<rows_to_delete::PyRowsToDelete>()
}
