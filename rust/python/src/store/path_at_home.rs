//! `path_at_home`.

use esker_store::mount;
use pyo3::prelude::*;

/// A path without its mount: what the mounted store calls it.
#[pyfunction]
pub(crate) fn path_at_home(path: &str) -> &str {
    mount::path_at_home(path)
}
