//! `ObjectWriter`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use esker_store::{block_on, ObjectWriter, StoreError};
use pyo3::prelude::*;

use crate::error::Result;

/// The writer of a new object, piece by piece.
#[pyclass(name = "ObjectWriter", module = "esker._native.store", frozen)]
pub(crate) struct PyObjectWriter(Mutex<Option<Box<dyn ObjectWriter>>>);

impl PyObjectWriter {
    pub(crate) fn over(writer: Box<dyn ObjectWriter>) -> Self {
        PyObjectWriter(Mutex::new(Some(writer)))
    }

    fn held(&self) -> MutexGuard<'_, Option<Box<dyn ObjectWriter>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ended() -> StoreError {
    StoreError::invalid_argument("", "expected a writer at work, found one that has ended; open another")
}

#[pymethods]
impl PyObjectWriter {
    fn write(&self, py: Python<'_>, data: &[u8]) -> Result<()> {
        let data = Bytes::copy_from_slice(data);
        py.detach(|| {
            let mut held = self.held();
            let writer = held.as_mut().ok_or_else(ended)?;
            block_on(writer.write(data))
        })?;
        Ok(())
    }

    fn finish(&self, py: Python<'_>) -> Result<u64> {
        let size = py.detach(|| {
            let writer = self.held().take().ok_or_else(ended)?;
            block_on(writer.finish())
        })?;
        Ok(size)
    }

    fn abort(&self, py: Python<'_>) -> Result<()> {
        py.detach(|| {
            let writer = self.held().take();
            writer.map_or(Ok(()), |writer| block_on(writer.abort()))
        })?;
        Ok(())
    }
}
