//! Where a copy goes while it is made: a small one is put at once, of a large one no more than a piece is in memory.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use esker_store::{block_on, ObjectWriter, StoreError, StoreRef};

use crate::error::Result;

/// Bytes that are held at most, and that a file may have to be put at once.
const PIECE: usize = 4 << 20;

/// A file in the making. Nothing of it is visible before its end; clones are the same file.
#[derive(Clone)]
pub(crate) struct SpliceOutput(Arc<Mutex<Outgoing>>);

struct Outgoing {
    store: StoreRef,
    path: String,
    held: Vec<u8>,
    size: u64,
    writer: Option<Box<dyn ObjectWriter>>,
    /// The store's error, kept here because the Parquet writer turns errors into texts.
    failure: Option<StoreError>,
}

impl std::fmt::Debug for SpliceOutput {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let outgoing = self.outgoing();
        write!(formatter, "SpliceOutput({}, {} bytes)", outgoing.path, outgoing.size)
    }
}

impl SpliceOutput {
    pub(crate) fn new(store: &StoreRef, path: &str) -> Self {
        Self(Arc::new(Mutex::new(Outgoing {
            store: store.clone(),
            path: path.to_owned(),
            held: Vec::new(),
            size: 0,
            writer: None,
            failure: None,
        })))
    }

    fn outgoing(&self) -> MutexGuard<'_, Outgoing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the store's error.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.outgoing().failure.take()
    }

    /// Makes the file visible; its size in bytes.
    pub(crate) fn finish(&self) -> Result<u64> {
        let mut outgoing = self.outgoing();
        let rest = Bytes::from(std::mem::take(&mut outgoing.held));
        match outgoing.writer.take() {
            None => block_on(outgoing.store.put(&outgoing.path, rest))?,
            Some(mut writer) => {
                block_on(async move {
                    writer.write(rest).await?;
                    writer.finish().await
                })?;
            }
        }
        Ok(outgoing.size)
    }

    /// Leaves nothing behind of a file that is not finished.
    pub(crate) fn abort(&self) -> Result<()> {
        let mut outgoing = self.outgoing();
        outgoing.held = Vec::new();
        if let Some(writer) = outgoing.writer.take() {
            block_on(writer.abort())?;
        }
        Ok(())
    }
}

impl Outgoing {
    fn send(&mut self) -> Result<(), StoreError> {
        let piece = Bytes::from(std::mem::take(&mut self.held));
        let writer = match &mut self.writer {
            Some(writer) => writer,
            empty => empty.insert(block_on(self.store.writer(&self.path))?),
        };
        block_on(writer.write(piece))
    }
}

impl Write for SpliceOutput {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut outgoing = self.outgoing();
        if outgoing.held.is_empty() {
            outgoing.held.reserve_exact(PIECE.saturating_add(data.len()));
        }
        outgoing.held.extend_from_slice(data);
        outgoing.size += data.len() as u64;
        if outgoing.held.len() >= PIECE {
            if let Err(error) = outgoing.send() {
                let told = error.to_string();
                outgoing.failure = Some(error);
                return Err(io::Error::other(told));
            }
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
