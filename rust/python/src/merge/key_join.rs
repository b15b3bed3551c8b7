//! `KeyJoin`.

use std::sync::Arc;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use esker_merge::{KeyJoin, MergeError};
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatchReader;

use crate::arrow::PyRows;
use crate::delta::PyArrowData;
use crate::error::{python, Result};

/// The keys of a source, joined with batches of a table's keys.
#[pyclass(name = "KeyJoin", module = "esker._native.merge", frozen)]
pub(crate) struct PyKeyJoin(KeyJoin);

#[pymethods]
impl PyKeyJoin {
    #[new]
    fn new(py: Python<'_>, stream: PyRecordBatchReader) -> Result<Self> {
        let batches = stream.into_reader().map_err(python)?;
        let join = py.detach(|| {
            let schema = batches.schema();
            let failed = |error| MergeError::invalid(format!("the input stream failed: {error}"));
            KeyJoin::new(&schema, batches.map(|batch| batch.map_err(failed)))
        });
        Ok(PyKeyJoin(join?))
    }

    #[getter]
    fn num_rows(&self) -> u32 {
        self.0.num_rows()
    }

    #[pyo3(signature = (batch, *, first = 0, most = None))]
    fn find(&self, py: Python<'_>, batch: PyRows, first: usize, most: Option<usize>) -> Result<(PyArrowData, usize)> {
        let batch = batch.into_inner();
        let found = py.detach(|| self.0.find(batch.columns(), first, most.unwrap_or(usize::MAX)))?;
        let next = found.next;
        let field = |name| Field::new(name, DataType::UInt32, false);
        let pairs = RecordBatch::try_new(
            Arc::new(Schema::new(vec![field("source"), field("target")])),
            vec![
                Arc::new(UInt32Array::from(found.source)),
                Arc::new(UInt32Array::from(found.target)),
            ],
        );
        let pairs = pairs.map_err(|e| MergeError::invalid(e.to_string()))?;
        Ok((PyArrowData::batch(pairs), next))
    }
}
