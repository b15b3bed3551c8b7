//! The columns of a copy: those of the old file, those that are replaced, and the bytes that either come from.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use esker_store::{block_on, StoreError, StoreRef};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::{SchemaDescriptor, TypePtr};

/// Bytes of the old file that are read at a time.
const WINDOW: u64 = 4 << 20;

/// One column of the copy, at the top of its schema.
#[derive(Debug, Clone)]
pub(crate) struct SplicedColumn {
    /// Its place in the old file, if its pages are copied.
    pub(crate) kept: Option<usize>,
    /// Its type in the copy.
    pub(crate) field: TypePtr,
}

/// The columns of a copy: those of the old file in their order, each replaced if `new` has one of its name; then the others of `new`. Or
/// those of `new` alone.
pub(crate) fn columns(old: &SchemaDescriptor, new: &SchemaDescriptor, only: bool) -> Vec<SplicedColumn> {
    let [olds, news] = [old, new].map(|schema| schema.root_schema().get_fields());
    let replaced = |field: &TypePtr| news.iter().find(|new| new.name() == field.name()).cloned();
    let mut found = Vec::new();
    for (index, field) in olds.iter().enumerate().filter(|_| !only) {
        let new = replaced(field);
        found.push(SplicedColumn {
            kept: new.is_none().then_some(index),
            field: new.unwrap_or_else(|| field.clone()),
        });
    }
    for field in news {
        if only || !olds.iter().any(|old| old.name() == field.name()) {
            found.push(SplicedColumn {
                kept: None,
                field: field.clone(),
            });
        }
    }
    found
}

/// The numbers of the leaves of a column at the top of a schema.
pub(crate) fn leaves(schema: &SchemaDescriptor, root: usize) -> Vec<usize> {
    let all = 0..schema.num_columns();
    all.filter(|leaf| schema.get_column_root_idx(*leaf) == root).collect()
}

/// The bytes of the old file up to the end of one column, read as they are asked for.
#[derive(Debug, Clone)]
pub(crate) struct OldPages {
    pub(crate) store: StoreRef,
    pub(crate) path: Arc<str>,
    pub(crate) end: u64,
    pub(crate) failure: Failure,
}

/// The store's error, kept here because the Parquet writer turns errors into texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<StoreError>>>);

impl Failure {
    pub(crate) fn take(&self) -> Option<StoreError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn tell(&self, error: StoreError) -> String {
        let message = error.to_string();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        message
    }
}

/// A reader of them from an offset on.
pub(crate) struct OldRead {
    pages: OldPages,
    at: u64,
    window: Bytes,
}

impl Length for OldPages {
    fn len(&self) -> u64 {
        self.end
    }
}

impl ChunkReader for OldPages {
    type T = OldRead;

    fn get_read(&self, start: u64) -> parquet::errors::Result<OldRead> {
        Ok(OldRead {
            pages: self.clone(),
            at: start,
            window: Bytes::new(),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.read(start, start.saturating_add(length as u64))
            .map_err(ParquetError::General)
    }
}

impl OldPages {
    fn read(&self, start: u64, end: u64) -> Result<Bytes, String> {
        let end = end.min(self.end);
        if start >= end {
            return Ok(Bytes::new());
        }
        let read = block_on(self.store.get_ranges(&self.path, &[start..end]));
        let mut read = read.map_err(|error| self.failure.tell(error))?;
        Ok(read.pop().unwrap_or_default())
    }
}

impl Read for OldRead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.window.is_empty() {
            let read = self.pages.read(self.at, self.at.saturating_add(WINDOW));
            self.window = read.map_err(io::Error::other)?;
            self.at = self.at.saturating_add(self.window.len() as u64);
        }
        let taken = self.window.len().min(into.len());
        if let Some(into) = into.get_mut(..taken) {
            into.copy_from_slice(&self.window.split_to(taken));
        }
        Ok(taken)
    }
}
