//! `esker._native.graveler`.

mod applied;
mod batch;
mod branch_staging;
mod change_stream;
mod changes;
mod commit;
mod differences;
mod entries;
mod entry_columns;
mod error;
mod imported_objects;
mod listing;
mod merged;
mod records;
mod rule;
mod sorted_names;
mod staged_paths;
mod storage;

pub(crate) use batch::PyBatch;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<applied::PyApplied>()?;
    module.add_class::<batch::PyBatch>()?;
    module.add_class::<branch_staging::PyBranchStaging>()?;
    module.add_class::<change_stream::PyChangeStream>()?;
    module.add_class::<changes::PyChanges>()?;
    module.add_class::<commit::PyCommit>()?;
    module.add_class::<differences::PyDifferences>()?;
    module.add_class::<imported_objects::PyImportedObjects>()?;
    module.add_class::<listing::PyListing>()?;
    module.add_class::<merged::PyMerged>()?;
    module.add_class::<records::PyRecords>()?;
    module.add_class::<rule::PySplitRule>()?;
    module.add_class::<sorted_names::PyMissingNames>()?;
    module.add_class::<sorted_names::PySortedNames>()?;
    module.add_class::<staged_paths::PyStagedPaths>()?;
    module.add_class::<storage::PyStorage>()?;
    module.add_function(wrap_pyfunction!(commit::encode_ref, module)?)?;
    module.add_function(wrap_pyfunction!(commit::decode_ref, module)?)?;
    module.add_function(wrap_pyfunction!(entries::decode_entry, module)?)?;
    module.add_function(wrap_pyfunction!(entries::decode_range, module)?)?;
    module.add_function(wrap_pyfunction!(entries::entry_identity, module)?)
}
