//! `esker._native.merge`.

#[allow(clippy::module_inception)]
mod merge;
mod merge_request;
mod merge_source;
mod merged;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<merge_source::PyMergeSource>()?;
    module.add_class::<merge_request::PyMergeRequest>()?;
    module.add_class::<merged::PyMerged>()?;
    module.add_function(wrap_pyfunction!(merge::merge, module)?)?;
    module.add_function(wrap_pyfunction!(merge::changed_rows, module)?)
}
