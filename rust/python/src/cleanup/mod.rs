//! `esker._native.cleanup`.

mod file_listing;
mod file_references;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<file_listing::PyFileListing>()?;
    module.add_class::<file_references::PyFileReferences>()
}
