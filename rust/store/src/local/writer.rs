//! Writes a file piece by piece.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::runtime::Handle;

use super::durable::Folders;
use super::temporary::Temporary;
use super::{shown, unfinished};
use crate::error::{Result, StoreError};
use crate::stats::StatsCounters;
use crate::store::ObjectWriter;

/// Small pieces are buffered up to this many bytes; a piece of at least that length is written to the file directly.
const BUFFER: usize = 256 << 10;

/// When a file gets its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// Once its bytes are safe.
    Last,
    /// Once they are written: for a file that nothing names yet.
    BeforeSync,
}

/// A temporary file that is renamed to its path when it is finished, and deleted if it is dropped before.
pub(super) struct LocalWriter {
    temporary: Temporary,
    target: PathBuf,
    named: Named,
    buffer: Vec<u8>,
    size: u64,
    stats: Arc<StatsCounters>,
}

impl LocalWriter {
    pub(super) fn new(
        folders: &Arc<Folders>,
        target: PathBuf,
        named: Named,
        stats: Arc<StatsCounters>,
    ) -> Result<Self> {
        let temporary = Temporary::new(folders, &target)?;
        Ok(Self {
            temporary,
            target,
            named,
            buffer: Vec::new(),
            size: 0,
            stats,
        })
    }

    fn append(&self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let written = self.temporary.file().write_all(bytes);
        written.map_err(|error| StoreError::from_io(shown(&self.target), "write", error))?;
        self.stats.add_write(bytes.len() as u64);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let written = self.append(&self.buffer);
        self.buffer.clear();
        written
    }
}

#[async_trait]
impl ObjectWriter for LocalWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.size += bytes.len() as u64;
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        if bytes.len() >= BUFFER {
            return self.append(&bytes);
        }
        self.buffer.extend_from_slice(&bytes);
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<u64> {
        self.flush()?;
        let LocalWriter {
            temporary,
            target,
            named,
            size,
            ..
        } = *self;
        let is_durable = temporary.is_durable();
        let target_path = target.clone();
        let name = move || match named {
            Named::Last => temporary.replace(&target),
            Named::BeforeSync => temporary.name_and_sync(&target),
        };
        // A sync takes as long as thousands of reads: it is waited for in another thread, so that several files are synced side by side.
        match Handle::try_current().ok().filter(|_| is_durable) {
            None => name()?,
            Some(handle) => handle
                .spawn_blocking(name)
                .await
                .map_err(|error| unfinished(&target_path, "write", error))??,
        }
        Ok(size)
    }

    async fn abort(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
