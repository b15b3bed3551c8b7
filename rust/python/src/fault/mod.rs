//! `esker._native.fault`: the test entry point of the store that fails on purpose.

mod fault_store;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<fault_store::PyFaultStore>()
}
