//! `esker._native.store`.

mod io_stats;
mod object_meta;
#[allow(clippy::module_inception)]
mod store;

pub(crate) use store::PyStore;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStore>()?;
    module.add_class::<object_meta::PyObjectMeta>()?;
    module.add_class::<io_stats::PyIoStats>()
}
