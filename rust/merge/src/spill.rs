//! Spills rows to disk, in an unlinked file, which disappears when it is closed, even if the process is killed.
//!
//! The file is a sequence of blocks. Each is an Arrow IPC stream of one batch and belongs to one partition, so that all partitions share a
//! file.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use esker_store::StoreError;
use uuid::Uuid;

use crate::error::{MergeError, Result};
use crate::quota::DiskQuota;

#[derive(Debug, Clone, Copy)]
struct Block {
    offset: u64,
    length: u64,
}

/// Spilled rows, by partition.
#[derive(Debug)]
pub struct Spill {
    file: File,
    schema: SchemaRef,
    end: u64,
    taken: u64,
    quota: DiskQuota,
    parts: Vec<Vec<Block>>,
}

fn broken(error: ArrowError) -> MergeError {
    MergeError::Store(StoreError::io("spill file", error.to_string()))
}

impl Spill {
    /// A new file in `folder`.
    pub fn create(folder: &Path, schema: SchemaRef, parts: usize) -> Result<Self> {
        let path = folder.join(format!("esker-{}.spill", Uuid::new_v4().simple()));
        let shown = path.display().to_string();
        let failed = |error| MergeError::Store(StoreError::from_io(&shown, "spill rows to", error));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(failed)?;
        std::fs::remove_file(&path).map_err(failed)?;
        Ok(Self {
            file,
            schema,
            end: 0,
            taken: 0,
            quota: DiskQuota::default(),
            parts: vec![Vec::new(); parts.max(1)],
        })
    }

    /// The same, with a limit of its bytes and of those of others.
    #[must_use]
    pub fn with_quota(mut self, quota: &DiskQuota) -> Self {
        self.quota = quota.clone();
        self
    }

    /// Bytes in the file.
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// Adds rows to a part.
    pub fn write(&mut self, part: usize, batch: &RecordBatch) -> Result<()> {
        let Some(blocks) = self.parts.get_mut(part).filter(|_| batch.num_rows() > 0) else {
            return Ok(());
        };
        let mut writer = StreamWriter::try_new(Vec::new(), &self.schema).map_err(broken)?;
        writer.write(batch).map_err(broken)?;
        let bytes = writer.into_inner().map_err(broken)?;
        let length = bytes.len() as u64;
        self.quota.take(length)?;
        self.taken += length;
        let failed = |error| MergeError::Store(StoreError::from_io("spill file", "write", error));
        self.file.write_all(&bytes).map_err(failed)?;
        blocks.push(Block {
            offset: self.end,
            length,
        });
        self.end += length;
        Ok(())
    }

    /// The rows of a part, in the order in which they were written.
    pub fn read(&self, part: usize) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
        let blocks = self.parts.get(part).map(Vec::as_slice).unwrap_or_default();
        blocks.iter().map(|block| self.block(*block))
    }

    /// One of the blocks of a part, by its place; none beyond the last.
    pub fn nth(&self, part: usize, place: usize) -> Option<Result<RecordBatch>> {
        let block = self.parts.get(part)?.get(place)?;
        Some(self.block(*block))
    }

    fn block(&self, block: Block) -> Result<RecordBatch> {
        let within = Within {
            file: &self.file,
            offset: block.offset,
            end: block.offset + block.length,
        };
        let mut reader = StreamReader::try_new(BufReader::new(within), None).map_err(broken)?;
        let batch = reader.next().transpose().map_err(broken)?;
        batch.ok_or_else(|| MergeError::corrupt("spill file", "expected a batch in a block, found none"))
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        self.quota.give_back(self.taken);
    }
}

/// A range of a file. Reads are positional, so that they may run concurrently.
struct Within<'a> {
    file: &'a File,
    offset: u64,
    end: u64,
}

impl Read for Within<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let size = buffer.len().min(left);
        let read = self
            .file
            .read_at(buffer.get_mut(..size).unwrap_or_default(), self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}
