//! `esker._native.scan`.

mod batch_stream;
mod count_rows;
mod deleted_row_ids;
mod ruled_out;
#[allow(clippy::module_inception)]
mod scan;
mod string_views;
mod take;
mod take_ids;

pub(crate) use batch_stream::PyBatchStream;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<batch_stream::PyBatchStream>()?;
    module.add_function(wrap_pyfunction!(scan::scan, module)?)?;
    module.add_function(wrap_pyfunction!(ruled_out::ruled_out, module)?)?;
    module.add_function(wrap_pyfunction!(string_views::string_views, module)?)?;
    module.add_function(wrap_pyfunction!(take::take, module)?)?;
    module.add_function(wrap_pyfunction!(take_ids::take_ids, module)?)?;
    module.add_function(wrap_pyfunction!(deleted_row_ids::deleted_row_ids, module)?)?;
    module.add_function(wrap_pyfunction!(count_rows::count_rows, module)?)
}
