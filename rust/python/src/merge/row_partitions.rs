//! `RowPartitions`.

use std::sync::{Mutex, MutexGuard};

use esker_merge::{KeyJoin, MergeError, RowPartitions};
use pyo3::prelude::*;
use pyo3_arrow::PySchema;

use super::disk_quota::{quota, PyDiskQuota};
use crate::arrow::PyRows;
use crate::delta::PyArrowData;
use crate::error::Result;

/// Rows by partition, in memory up to a limit and beyond it on disk.
#[pyclass(name = "RowPartitions", module = "esker._native.merge", frozen)]
pub(crate) struct PyRowPartitions(Mutex<RowPartitions>);

impl PyRowPartitions {
    fn held(&self) -> Result<MutexGuard<'_, RowPartitions>> {
        let held = self.0.lock();
        Ok(held.map_err(|_| MergeError::invalid("an earlier call failed; begin anew"))?)
    }
}

#[pymethods]
impl PyRowPartitions {
    #[new]
    #[pyo3(signature = (schema, parts, *, memory_limit, disk = None))]
    fn new(schema: PySchema, parts: usize, memory_limit: u64, disk: Option<PyRef<'_, PyDiskQuota>>) -> Self {
        let held = RowPartitions::new(schema.into_inner(), parts, memory_limit, &quota(disk.as_deref()));
        PyRowPartitions(Mutex::new(held))
    }

    #[getter]
    fn spilled_bytes(&self, py: Python<'_>) -> Result<u64> {
        py.detach(|| Ok(self.held()?.spilled_bytes()))
    }

    #[getter]
    fn rows(&self, py: Python<'_>) -> Result<Vec<u64>> {
        py.detach(|| Ok(self.held()?.rows().to_vec()))
    }

    fn push_by_key(&self, py: Python<'_>, batch: PyRows, keys: PyRows) -> Result<()> {
        let (batch, keys) = (batch.into_inner(), keys.into_inner());
        py.detach(|| {
            let encoded = KeyJoin::encoder(&keys.schema())?.encode(keys.columns())?;
            Ok(self.held()?.push_by_key(&batch, &encoded)?)
        })
    }

    fn push_to(&self, py: Python<'_>, batch: PyRows, part: usize) -> Result<()> {
        let batch = batch.into_inner();
        py.detach(|| Ok(self.held()?.push_to(&batch, part)?))
    }

    fn read(&self, py: Python<'_>, part: usize) -> Result<Vec<PyArrowData>> {
        let found = py.detach(|| self.held()?.read(part).map_err(crate::error::NativeError::from))?;
        Ok(found.into_iter().map(PyArrowData::batch).collect())
    }
}
