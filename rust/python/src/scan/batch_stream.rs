//! `BatchStream`.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use esker_store::runtime;
use esker_table::read::{BatchStream, GroupCounts};
use esker_table::TableError;
use futures::stream::BoxStream;
use futures::StreamExt;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::to_stream_pycapsule;
use pyo3_arrow::ffi::ArrayIterator;

use crate::arrow::schema_capsule;
use crate::error::{python, to_python, Result};

type Slot = Arc<Mutex<Option<TableError>>>;

/// Record batches as they are decoded.
#[pyclass(name = "BatchStream", module = "esker._native.scan", frozen)]
pub(crate) struct PyBatchStream {
    schema: SchemaRef,
    batches: Mutex<Option<BoxStream<'static, esker_table::Result<RecordBatch>>>>,
    error: Slot,
    groups: Arc<GroupCounts>,
}

impl From<BatchStream> for PyBatchStream {
    fn from(stream: BatchStream) -> Self {
        PyBatchStream {
            schema: stream.schema,
            batches: Mutex::new(Some(stream.batches)),
            error: Slot::default(),
            groups: stream.groups,
        }
    }
}

struct Reader {
    schema: SchemaRef,
    batches: BoxStream<'static, esker_table::Result<RecordBatch>>,
    error: Slot,
}

impl Iterator for Reader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match runtime() {
            // A panic must not get to the caller, which is C: the process would end.
            Ok(runtime) => match catch_unwind(AssertUnwindSafe(|| runtime.block_on(self.batches.next()))) {
                Ok(next) => next?,
                Err(_) => Err(TableError::task_failed("scan", &"it panicked")),
            },
            Err(error) => Err(error.into()),
        };
        Some(next.map_err(|error| {
            // The message is passed as a C string, which a zero byte would end.
            let text = error.to_string().replace('\0', "\\0");
            if let Ok(mut slot) = self.error.lock() {
                *slot = Some(error);
            }
            ArrowError::ExternalError(text.into())
        }))
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

#[pymethods]
impl PyBatchStream {
    #[getter]
    fn error(&self, py: Python<'_>) -> Option<PyErr> {
        let slot = self.error.lock().ok()?;
        slot.as_ref().map(|error| to_python(py, error))
    }

    #[getter]
    fn groups(&self) -> (u64, u64) {
        (self.groups.seen(), self.groups.skipped())
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> Result<Bound<'py, PyCapsule>> {
        let batches = self.batches.lock().ok().and_then(|mut batches| batches.take());
        let batches = batches.ok_or_else(|| TableError::invalid("the stream is consumed already; scan again"))?;
        let reader = Reader {
            schema: self.schema.clone(),
            batches,
            error: self.error.clone(),
        };
        let reader: Box<dyn RecordBatchReader + Send> = Box::new(reader);
        let field = Arc::new(
            arrow_schema::Field::new_struct("", self.schema.fields().clone(), false)
                .with_metadata(self.schema.metadata().clone()),
        );
        let arrays = reader.map(|batch| batch.map(|batch| Arc::new(arrow_array::StructArray::from(batch)) as _));
        to_stream_pycapsule(py, Box::new(ArrayIterator::new(arrays, field)), requested_schema).map_err(python)
    }
}
