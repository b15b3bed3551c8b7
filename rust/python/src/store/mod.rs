//! `esker._native.store`.

mod io_stats;
mod listed_objects;
mod object_meta;
mod object_writer;
mod path_at_home;
mod session;
#[allow(clippy::module_inception)]
mod store;

pub(crate) use listed_objects::PyListedObjects;
pub(crate) use store::PyStore;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStore>()?;
    module.add_class::<session::PySession>()?;
    module.add_class::<PyListedObjects>()?;
    module.add_class::<object_meta::PyObjectMeta>()?;
    module.add_class::<object_writer::PyObjectWriter>()?;
    module.add_class::<io_stats::PyIoStats>()?;
    module.add_function(wrap_pyfunction!(io_stats::total_reads, module)?)?;
    module.add_function(wrap_pyfunction!(path_at_home::path_at_home, module)?)?;
    module.add_function(wrap_pyfunction!(is_secret_option, module)?)
}

/// Whether a storage option of that name holds a secret.
#[pyfunction]
#[pyo3(signature = (key, /))]
fn is_secret_option(key: &str) -> bool {
    esker_store::cloud::is_secret(key)
}
