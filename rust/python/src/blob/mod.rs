//! `esker._native.blob`.

mod locate_blobs;
mod located_blob;
mod read_blobs;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<located_blob::PyLocatedBlob>()?;
    module.add_function(wrap_pyfunction!(locate_blobs::locate_blobs, module)?)?;
    module.add_function(wrap_pyfunction!(read_blobs::read_blobs, module)?)?;
    module.add_function(wrap_pyfunction!(read_blobs::read_blob_ranges, module)?)
}
