//! `esker._native.store`.

mod io_stats;
mod object_meta;
mod path_at_home;
#[allow(clippy::module_inception)]
mod store;

pub(crate) use store::PyStore;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStore>()?;
    module.add_class::<object_meta::PyObjectMeta>()?;
    module.add_class::<io_stats::PyIoStats>()?;
    module.add_function(wrap_pyfunction!(path_at_home::path_at_home, module)?)
}
