//! `esker._native.table`.

mod base_path;
mod data_file;
mod fragment;
mod index;
mod manifest;
mod naming;
mod operation;
mod transaction;

pub(crate) use fragment::PyFragment;
pub(crate) use manifest::PyManifest;
pub(crate) use operation::PyOperation;
pub(crate) use transaction::PyTransaction;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<data_file::PyDataFile>()?;
    module.add_class::<PyFragment>()?;
    module.add_class::<PyManifest>()?;
    module.add_class::<index::PyIndex>()?;
    module.add_class::<operation::PyOperation>()?;
    module.add_class::<PyTransaction>()?;
    module.add_class::<transaction::PyHeldColumns>()?;
    module.add_function(wrap_pyfunction!(naming::manifest_name, module)?)?;
    module.add_function(wrap_pyfunction!(naming::parse_manifest_name, module)?)
}
