//! `path_at_home`.

use esker_store::mount;
use pyo3::prelude::*;

/// What a path is called in the place that it leads to.
#[pyfunction]
pub(crate) fn path_at_home(path: &str) -> &str {
    mount::path_at_home(path)
}
