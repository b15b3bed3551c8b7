//! Runs: sorted records in a temporary local file.
//!
//! ```text
//! block*      length (u32, little endian) | Snappy's raw form of: record*
//! record      length of key (varint) | length of value (varint) | key | value
//! ```

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use esker_store::StoreError;
use snap::raw::{Decoder, Encoder};

use crate::error::{GravelerError, Result};
use crate::varint::{put_uvarint, uvarint};

/// The size in bytes, before compression, at which a block is full.
const BLOCK: usize = if cfg!(test) { 100 } else { 128 << 10 };

fn failed(path: &Path, doing: &str, error: io::Error) -> GravelerError {
    StoreError::from_io(path.display().to_string(), doing, error).into()
}

/// A run that is being written.
#[derive(Debug)]
pub(super) struct RunWriter {
    path: PathBuf,
    file: BufWriter<File>,
    block: Vec<u8>,
    last: Vec<u8>,
    count: u64,
}

impl RunWriter {
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        let file = File::create(&path).map_err(|error| failed(&path, "create", error))?;
        Ok(RunWriter {
            path,
            file: BufWriter::new(file),
            block: Vec::new(),
            last: Vec::new(),
            count: 0,
        })
    }

    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        put_uvarint(&mut self.block, key.len() as u64);
        put_uvarint(&mut self.block, value.len() as u64);
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(value);
        self.last.clear();
        self.last.extend_from_slice(key);
        self.count += 1;
        if self.block.len() >= BLOCK {
            self.end_block()?;
        }
        Ok(())
    }

    pub(super) fn last_key(&self) -> &[u8] {
        &self.last
    }

    fn end_block(&mut self) -> Result<()> {
        let packed = Encoder::new().compress_vec(&self.block);
        let packed = packed.map_err(|error| GravelerError::invalid(format!("a record is too large: {error}")))?;
        let length = u32::try_from(packed.len());
        let length = length.map_err(|_| GravelerError::invalid("a record has four gigabytes or more"))?;
        let written = self.file.write_all(&length.to_le_bytes());
        let written = written.and_then(|()| self.file.write_all(&packed));
        written.map_err(|error| failed(&self.path, "write", error))?;
        self.block.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Run> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        self.file.flush().map_err(|error| failed(&self.path, "write", error))?;
        Ok(Run {
            path: self.path,
            count: self.count,
        })
    }
}

/// A finished run.
#[derive(Debug)]
pub(super) struct Run {
    path: PathBuf,
    count: u64,
}

impl Run {
    pub(super) fn read(&self) -> Result<RunReader> {
        let file = File::open(&self.path).map_err(|error| failed(&self.path, "open", error))?;
        Ok(RunReader {
            path: self.path.clone(),
            left: self.count,
            file: BufReader::new(file),
            packed: Vec::new(),
            block: Vec::new(),
            key: 0..0,
            value: 0..0,
        })
    }

    pub(super) fn remove(self) {
        // At the latest it is removed with its folder.
        let _ = fs::remove_file(self.path);
    }
}

/// A cursor over a run: before the first record, at one, or after the last.
#[derive(Debug)]
pub(super) struct RunReader {
    path: PathBuf,
    /// The number of records left, so that a truncated file is not taken for a complete one.
    left: u64,
    file: BufReader<File>,
    packed: Vec<u8>,
    block: Vec<u8>,
    key: Range<usize>,
    value: Range<usize>,
}

impl RunReader {
    pub(super) fn advance(&mut self) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        if self.value.end >= self.block.len() {
            self.next_block()?;
        }
        let start = self.value.end;
        let found = self.block.get(start..).and_then(record);
        let Some((key, value)) = found else {
            return Err(self.damaged("a record that ends within its block"));
        };
        self.key = start + key.start..start + key.end;
        self.value = start + value.start..start + value.end;
        self.left -= 1;
        Ok(true)
    }

    fn next_block(&mut self) -> Result<()> {
        let mut length = [0; 4];
        let read = self.file.read_exact(&mut length);
        read.map_err(|error| failed(&self.path, "read", error))?;
        self.packed.resize(u32::from_le_bytes(length) as usize, 0);
        let read = self.file.read_exact(&mut self.packed);
        read.map_err(|error| failed(&self.path, "read", error))?;
        let size = snap::raw::decompress_len(&self.packed).unwrap_or_default();
        self.block.resize(size, 0);
        let unpacked = Decoder::new().decompress(&self.packed, &mut self.block);
        if unpacked.is_err() || size == 0 {
            return Err(self.damaged("a block of records"));
        }
        (self.key, self.value) = (0..0, 0..0);
        Ok(())
    }

    fn damaged(&self, expected: &str) -> GravelerError {
        let message = format!("expected {expected}, found other bytes; somebody else wrote to a temporary file");
        GravelerError::corrupt(self.path.display().to_string(), message)
    }

    pub(super) fn key(&self) -> &[u8] {
        self.block.get(self.key.clone()).unwrap_or_default()
    }

    pub(super) fn value(&self) -> &[u8] {
        self.block.get(self.value.clone()).unwrap_or_default()
    }
}

/// The ranges of the key and the value of the first record.
fn record(bytes: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    let (key_len, used) = uvarint(bytes)?;
    let (value_len, more) = uvarint(bytes.get(used..)?)?;
    let start = used + more;
    let middle = start.checked_add(usize::try_from(key_len).ok()?)?;
    let end = middle.checked_add(usize::try_from(value_len).ok()?)?;
    (end <= bytes.len()).then_some((start..middle, middle..end))
}
