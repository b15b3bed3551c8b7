//! `ListedObjects`.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use esker_store::{block_on, runtime, ObjectMeta, StoreError, StoreRef};
use futures::StreamExt;
use pyo3::prelude::*;
use tokio::sync::mpsc::{channel, Receiver};
use tokio::task::JoinHandle;

use crate::error::{python, Result};
use crate::graveler::PyBatch;

/// Batches that are listed ahead.
const AHEAD: usize = 4;

type Found = std::result::Result<Vec<ObjectMeta>, StoreError>;

/// A listing in batches, which reads ahead in the background.
#[pyclass(name = "ListedObjects", module = "esker._native.store", frozen)]
pub(crate) struct PyListedObjects(Mutex<Listing>);

struct Listing {
    batches: Receiver<Found>,
    lists: Option<JoinHandle<()>>,
}

impl PyListedObjects {
    /// Lists the objects below a folder.
    pub(super) fn start(store: StoreRef, prefix: &str) -> std::result::Result<Self, StoreError> {
        let mut found = block_on(store.list_batches(prefix))?;
        let (sender, batches) = channel(AHEAD);
        let lists = runtime()?.spawn(async move {
            while let Some(batch) = found.next().await {
                let failed = batch.is_err();
                if sender.send(batch).await.is_err() || failed {
                    break;
                }
            }
        });
        Ok(PyListedObjects(Mutex::new(Listing {
            batches,
            lists: Some(lists),
        })))
    }

    /// The next objects; `None` at the end. The GIL must be released.
    pub(crate) fn next(&self) -> std::result::Result<Option<Vec<ObjectMeta>>, StoreError> {
        let mut listing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        block_on(async {
            if let Some(batch) = listing.batches.recv().await {
                return batch.map(Some);
            }
            if let Some(lists) = listing.lists.take() {
                // A listing task that failed must not look like the end of the listing.
                lists
                    .await
                    .map_err(|error| StoreError::io("", format!("a task that lists objects failed: {error}")))?;
            }
            Ok(None)
        })
    }
}

#[pymethods]
impl PyListedObjects {
    fn next_batch(&self, py: Python<'_>) -> Result<Option<PyBatch>> {
        let Some(found) = py.detach(|| self.next())? else {
            return Ok(None);
        };
        let number = |name: &str, nullable| Field::new(name, DataType::Int64, nullable);
        let schema = Schema::new(vec![
            Field::new("path", DataType::Utf8, false),
            number("size_bytes", false),
            number("modified_us", true),
        ]);
        let size = |meta: &ObjectMeta| i64::try_from(meta.size).unwrap_or(i64::MAX);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(found.iter().map(|meta| &meta.path))),
            Arc::new(Int64Array::from_iter_values(found.iter().map(size))),
            Arc::new(Int64Array::from_iter(found.iter().map(|meta| meta.last_modified_us))),
        ];
        let batch = RecordBatch::try_new(Arc::new(schema), columns);
        let failed =
            |error: arrow_schema::ArrowError| python(pyo3::exceptions::PyValueError::new_err(error.to_string()));
        Ok(Some(PyBatch(batch.map_err(failed)?)))
    }
}
