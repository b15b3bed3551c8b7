//! `esker._native.merge`.

mod disk_quota;
mod key_join;
#[allow(clippy::module_inception)]
mod merge;
mod merge_request;
mod merge_source;
mod merged;
mod row_partitions;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<disk_quota::PyDiskQuota>()?;
    module.add_class::<merge_source::PyMergeSource>()?;
    module.add_class::<merge_request::PyMergeRequest>()?;
    module.add_class::<merged::PyMerged>()?;
    module.add_class::<key_join::PyKeyJoin>()?;
    module.add_class::<row_partitions::PyRowPartitions>()?;
    module.add_function(wrap_pyfunction!(merge::merge, module)?)?;
    module.add_function(wrap_pyfunction!(merge::changed_rows, module)?)
}
