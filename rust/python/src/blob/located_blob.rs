//! `LocatedBlob`.

use std::ops::Range;

use bytes::Bytes;
use esker_file::blob::{fetch_ranges, size_of, BlobObject};
use esker_file::FileError;
use esker_store::StoreRef;
use esker_table::read::LocatedBlob;
use esker_table::TableError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::Result;
use crate::signals::or_signal;

/// One blob that is not null: its location, and ranges of its bytes on request.
#[pyclass(name = "LocatedBlob", module = "esker._native.blob", frozen)]
pub(crate) struct PyLocatedBlob {
    store: StoreRef,
    address: u64,
    object: BlobObject,
    start: u64,
    size: u64,
}

impl PyLocatedBlob {
    /// The blob of a row; `None` for a null. Requests the size of an external object if its description lacks it.
    pub(super) async fn new(store: &StoreRef, row: LocatedBlob) -> std::result::Result<Option<Self>, FileError> {
        let Some(location) = row.location else {
            return Ok(None);
        };
        let size = size_of(store, &location).await?;
        Ok(Some(PyLocatedBlob {
            store: store.clone(),
            address: row.address,
            object: location.object,
            start: location.start,
            size,
        }))
    }

    fn range(&self, offset: u64, length: u64) -> std::result::Result<Range<u64>, TableError> {
        match offset.checked_add(length) {
            Some(end) if end <= self.size => Ok(self.start + offset..self.start + end),
            _ => Err(TableError::invalid(format!(
                "expected a range within the blob's {} bytes, found {length} bytes at {offset}",
                self.size
            ))),
        }
    }
}

#[pymethods]
impl PyLocatedBlob {
    #[getter]
    fn address(&self) -> u64 {
        self.address
    }

    #[getter]
    fn size(&self) -> u64 {
        self.size
    }

    fn read_ranges<'py>(&self, py: Python<'py>, ranges: Vec<(u64, u64)>) -> Result<Vec<Bound<'py, PyBytes>>> {
        let wanted = ranges
            .into_iter()
            .map(|(offset, length)| Ok((&self.object, self.range(offset, length)?)))
            .collect::<std::result::Result<Vec<_>, TableError>>()?;
        let parts: Vec<Bytes> = or_signal(py, || fetch_ranges(&self.store, &wanted))??;
        Ok(parts.iter().map(|part| PyBytes::new(py, part)).collect())
    }
}
