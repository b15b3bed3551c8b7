//! `MergeSource`.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Field};
use esker_merge::MergeSource;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::{to_stream_pycapsule, ArrayIterator};
use pyo3_arrow::PyRecordBatchReader;

use super::disk_quota::{quota, PyDiskQuota};
use crate::error::{python, Result};

/// The source rows of a merge, which can be read any number of times.
#[pyclass(name = "MergeSource", module = "esker._native.merge", frozen)]
pub(crate) struct PyMergeSource(pub(super) Arc<MergeSource>);

/// Reads the batches of a source, one after the other.
struct Reader {
    source: Arc<MergeSource>,
    place: usize,
}

impl Iterator for Reader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.source.nth(self.place)?;
        self.place += 1;
        Some(found.map_err(|error| ArrowError::ExternalError(error.to_string().replace('\0', "\\0").into())))
    }
}

#[pymethods]
impl PyMergeSource {
    #[new]
    #[pyo3(signature = (stream, *, memory_limit, disk = None))]
    fn new(
        py: Python<'_>,
        stream: PyRecordBatchReader,
        memory_limit: u64,
        disk: Option<PyRef<'_, PyDiskQuota>>,
    ) -> Result<Self> {
        let quota = quota(disk.as_deref());
        let batches = stream.into_reader().map_err(python)?;
        let source = py.detach(|| MergeSource::read(batches, memory_limit, &quota))?;
        Ok(PyMergeSource(Arc::new(source)))
    }

    #[getter]
    fn num_rows(&self) -> u64 {
        self.0.num_rows()
    }

    #[getter]
    fn spilled_bytes(&self) -> u64 {
        self.0.spilled_bytes()
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> Result<Bound<'py, PyCapsule>> {
        let schema = self.0.schema();
        let field = Field::new_struct("", schema.fields().clone(), false).with_metadata(schema.metadata().clone());
        let reader = Reader {
            source: self.0.clone(),
            place: 0,
        };
        let arrays = reader.map(|batch| batch.map(|batch| Arc::new(arrow_array::StructArray::from(batch)) as _));
        to_stream_pycapsule(
            py,
            Box::new(ArrayIterator::new(arrays, Arc::new(field))),
            requested_schema,
        )
        .map_err(python)
    }
}
