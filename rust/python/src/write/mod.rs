//! `esker._native.write`.

mod spill_row_lineage;
mod write_fragments;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(spill_row_lineage::spill_row_lineage, module)?)?;
    module.add_function(wrap_pyfunction!(write_fragments::write_fragments, module)?)
}
