//! The tail of a file, where every version has its footer.

use std::sync::Arc;

use bytes::Bytes;
use esker_store::store::StoreRef;

use super::bytes::u16_at;
use super::metadata::BufferRange;
use super::whole::WholeFile;
use super::MAGIC;
use crate::error::{FileError, Result};
use crate::version::FileVersion;

/// The size of the first read behind a network: in most files it holds all the metadata.
const FAR_TAIL_SIZE: u64 = 64 * 1024;

/// The same elsewhere, where a second read costs less than to copy what hardly any file needs.
const NEAR_TAIL_SIZE: u64 = 16 * 1024;

/// The last bytes of a file that is being opened.
#[derive(Debug)]
pub struct FileTail {
    pub(crate) store: StoreRef,
    pub(crate) path: String,
    /// The file's size in bytes.
    pub(crate) size: u64,
    pub(crate) bytes: Bytes,
    /// The whole of a short file, where a read costs a request.
    pub(crate) whole: Option<Bytes>,
}

impl FileTail {
    /// Reads the tail of the file at `path`: one request, if the store serves suffix ranges or the file's size is known.
    pub async fn fetch(store: StoreRef, path: &str, size: Option<u64>) -> Result<FileTail> {
        let wanted = if store.is_far() { FAR_TAIL_SIZE } else { NEAR_TAIL_SIZE };
        let tail = store.get_tail_of(path, wanted, size).await?;
        let is_whole = tail.bytes.len() as u64 == tail.size;
        let whole = (is_whole && store.is_far()).then(|| tail.bytes.clone());
        let store: StoreRef = match &whole {
            Some(bytes) => Arc::new(WholeFile {
                store,
                path: path.to_string(),
                bytes: bytes.clone(),
            }),
            None => store,
        };
        Ok(FileTail {
            store,
            path: path.to_string(),
            size: tail.size,
            bytes: tail.bytes,
            whole,
        })
    }

    /// The version that the file's last bytes name.
    pub fn version(&self) -> Result<FileVersion> {
        version_of_tail(&self.bytes, &self.path)
    }

    /// Where the tail starts in the file.
    pub(crate) fn start(&self) -> u64 {
        self.size.saturating_sub(self.bytes.len() as u64)
    }

    /// Bytes of the file, if the tail holds them.
    pub(crate) fn slice(&self, range: &BufferRange) -> Option<Bytes> {
        let from = usize::try_from(range.start.checked_sub(self.start())?).ok()?;
        let to = usize::try_from(range.end.checked_sub(self.start())?).ok()?;
        (from <= to && to <= self.bytes.len()).then(|| self.bytes.slice(from..to))
    }

    /// Lets go of what lies before `wanted` and the `buffers` that it holds, where that is most of it: what is cut from it later keeps all
    /// of it in memory.
    pub(crate) fn trim(&mut self, wanted: u64, buffers: &[BufferRange]) {
        let start = self.start();
        let held = buffers.iter().map(|buffer| buffer.start).filter(|at| *at >= start);
        let first = held.chain([wanted]).min().unwrap_or(wanted);
        let skipped = usize::try_from(first.saturating_sub(start)).unwrap_or(0);
        if self.whole.is_none() && skipped > self.bytes.len() / 2 {
            self.bytes = Bytes::copy_from_slice(self.bytes.get(skipped..).unwrap_or_default());
        }
    }

    /// Extends the tail to start at `wanted`, if it starts later.
    pub(crate) async fn widen(&mut self, wanted: u64) -> Result<()> {
        if wanted < self.start() {
            let range = wanted..self.size;
            let mut parts = self.store.get_ranges(&self.path, std::slice::from_ref(&range)).await?;
            self.bytes = parts.pop().unwrap_or_default();
        }
        Ok(())
    }
}

/// The file version that the last bytes of a file name.
pub(crate) fn version_of_tail(tail: &[u8], path: &str) -> Result<FileVersion> {
    let end = tail.len();
    let magic_at = end.checked_sub(4);
    if magic_at.and_then(|at| tail.get(at..)) != Some(MAGIC.as_slice()) {
        let found = String::from_utf8_lossy(tail.get(end.saturating_sub(4)..).unwrap_or_default()).into_owned();
        return Err(FileError::corrupt(
            path,
            format!("expected a Lance file that ends in \"LANC\", found {found:?}; the file is cut short or is no Lance file"),
        ));
    }
    let numbers = end
        .checked_sub(8)
        .and_then(|at| Some((u16_at(tail, at)?, u16_at(tail, at + 2)?)));
    let (major, minor) = numbers
        .ok_or_else(|| FileError::corrupt(path, "expected a version before \"LANC\", found the file's start"))?;
    FileVersion::from_footer(major, minor).map_err(|e| FileError::unsupported(format!("file {path}: {e}")))
}
