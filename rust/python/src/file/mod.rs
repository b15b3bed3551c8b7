//! `esker._native.file`.

mod inspect;
mod reader;
mod why;
mod writer;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<inspect::PyFileLayout>()?;
    module.add_class::<inspect::PyColumnLayout>()?;
    module.add_class::<inspect::PyPageLayout>()?;
    module.add_class::<why::PyAlternative>()?;
    module.add_class::<reader::PyFileReader>()?;
    module.add_class::<writer::PyFileWriter>()?;
    module.add_function(wrap_pyfunction!(inspect::inspect, module)?)?;
    module.add_function(wrap_pyfunction!(why::why, module)?)?;
    module.add_function(wrap_pyfunction!(inspect::plain_bytes, module)?)
}
