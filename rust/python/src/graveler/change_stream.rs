//! `ChangeStream`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use esker_graveler::change::Changes;
use esker_graveler::change_stream::{Batches, ChangeStream};
use esker_graveler::GravelerError;
use pyo3::prelude::*;

/// A stream of sorted changes, which can be read once.
#[pyclass(name = "ChangeStream", module = "esker._native.graveler", frozen)]
pub(crate) struct PyChangeStream {
    changes: Mutex<Option<Batches>>,
    count: Arc<AtomicU64>,
}

impl PyChangeStream {
    /// A stream of batches, whose changes are counted while they are read.
    pub(super) fn new(batches: impl Iterator<Item = Result<Changes, GravelerError>> + Send + 'static) -> Self {
        let count = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&count);
        let batches = batches.inspect(move |batch| {
            let read = batch.as_ref().map_or(0, Changes::len);
            counted.fetch_add(read as u64, Ordering::Relaxed);
        });
        PyChangeStream {
            changes: Mutex::new(Some(Box::new(batches))),
            count,
        }
    }

    /// Takes the changes; an error the second time.
    pub(super) fn take(&self) -> Result<ChangeStream, GravelerError> {
        let taken = self.changes.lock().unwrap_or_else(PoisonError::into_inner).take();
        let changes = taken.ok_or_else(|| {
            GravelerError::invalid("expected changes that nobody has read, found a stream that was read; make another")
        })?;
        Ok(ChangeStream::new(changes))
    }
}

#[pymethods]
impl PyChangeStream {
    #[getter]
    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}
