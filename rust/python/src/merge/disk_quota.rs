//! `DiskQuota`.

use esker_merge::DiskQuota;
use pyo3::prelude::*;

/// Bytes that temporary files may take, together.
#[pyclass(name = "DiskQuota", module = "esker._native.merge", frozen)]
pub(crate) struct PyDiskQuota(pub(super) DiskQuota);

#[pymethods]
impl PyDiskQuota {
    #[new]
    #[pyo3(signature = (limit = None))]
    fn new(limit: Option<u64>) -> Self {
        PyDiskQuota(limit.map(DiskQuota::new).unwrap_or_default())
    }

    #[getter]
    fn used(&self) -> u64 {
        self.0.used()
    }
}

/// The quota of a caller, or one without a limit.
pub(super) fn quota(given: Option<&PyDiskQuota>) -> DiskQuota {
    given.map(|given| given.0.clone()).unwrap_or_default()
}
