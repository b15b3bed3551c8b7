//! `esker._native.compaction`.

mod rewrite_fragments;
mod rewrite_outcome;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<rewrite_outcome::PyRewriteOutcome>()?;
    module.add_function(wrap_pyfunction!(rewrite_fragments::rewrite_fragments, module)?)
}
