//! `IoStats` and `total_reads`.

use esker_store::IoStats;
use pyo3::prelude::*;

/// Requests and bytes of one store since the last call.
#[pyclass(name = "IoStats", module = "esker._native.store", frozen)]
pub(crate) struct PyIoStats(pub(crate) IoStats);

#[pymethods]
impl PyIoStats {
    #[getter]
    fn read_iops(&self) -> u64 {
        self.0.read_requests
    }

    #[getter]
    fn read_bytes(&self) -> u64 {
        self.0.bytes_read
    }

    #[getter]
    fn write_iops(&self) -> u64 {
        self.0.write_requests
    }

    #[getter]
    fn write_bytes(&self) -> u64 {
        self.0.bytes_written
    }

    fn __repr__(&self) -> String {
        let s = &self.0;
        format!(
            "IoStats(read_iops={}, read_bytes={}, write_iops={}, write_bytes={})",
            s.read_requests, s.bytes_read, s.write_requests, s.bytes_written
        )
    }
}

/// The read requests of all stores of the process, and the bytes that they read.
#[pyfunction]
pub(super) fn total_reads() -> (u64, u64) {
    esker_store::total_reads()
}
