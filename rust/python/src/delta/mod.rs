//! `esker._native.delta`.

mod arrow_data;
mod changes;
mod checkpoint;
mod column_splice;
mod deletion_vector;
mod error;
mod file_rows;
mod file_selection;
mod snapshot;

pub(crate) use arrow_data::PyArrowData;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<arrow_data::PyArrowData>()?;
    module.add_class::<column_splice::PyColumnSplice>()?;
    module.add_class::<file_rows::PyFileRows>()?;
    module.add_class::<snapshot::PySnapshot>()?;
    module.add_class::<file_selection::PyFileSelection>()?;
    module.add_function(wrap_pyfunction!(changes::read_changes, module)?)?;
    module.add_function(wrap_pyfunction!(deletion_vector::encode_deletion_vector, module)?)?;
    module.add_function(wrap_pyfunction!(deletion_vector::decode_deletion_vector, module)?)?;
    module.add_function(wrap_pyfunction!(deletion_vector::deletion_vector_file, module)?)?;
    module.add_function(wrap_pyfunction!(deletion_vector::z85_text, module)?)?;
    module.add_function(wrap_pyfunction!(deletion_vector::read_deletion_vector, module)?)?;
    module.add_function(wrap_pyfunction!(deletion_vector::deletion_vector_elsewhere, module)?)?;
    module.add_function(wrap_pyfunction!(deletion_vector::canonical_path, module)?)
}
