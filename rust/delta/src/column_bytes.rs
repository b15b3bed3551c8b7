//! The bytes of some Parquet columns: read at once from a store behind a network, page by page from a local one, so that no column is held
//! in memory there. A column of which most pages are wanted is read in windows that grow while they follow each other.

use std::io::{Error, Read};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes};
use esker_store::{StoreError, StoreRef};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use tokio::runtime::Handle;

/// The first read of a page header, in bytes: most headers are smaller.
const WINDOW: u64 = 1 << 10;

/// A Parquet reader's source of bytes.
#[derive(Debug)]
pub(crate) enum ColumnBytes {
    /// Read before, in memory.
    Read(Pieces),
    /// Read from the local file on demand.
    Near(NearFile),
    /// Read from the local file in windows.
    Windows(Windows),
}

/// The ranges of a file that were read.
#[derive(Debug)]
pub(crate) struct Pieces {
    size: u64,
    /// Sorted by their start.
    pieces: Vec<(u64, Bytes)>,
}

/// A file that is read on demand, by threads that may block.
#[derive(Debug, Clone)]
pub(crate) struct NearFile {
    store: StoreRef,
    path: String,
    size: u64,
    runtime: Handle,
    failure: Failure,
}

/// The store's error, kept here because the decoder turns errors into texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<StoreError>>>);

impl Failure {
    /// Takes the error.
    pub(crate) fn take(&self) -> Option<StoreError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn tell(&self, error: StoreError) -> ParquetError {
        let message = error.to_string();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        ParquetError::General(message)
    }
}

/// A reader of a near file from an offset on.
#[derive(Debug)]
pub(crate) struct NearRead {
    file: NearFile,
    at: u64,
    window: Bytes,
}

/// A local file of which one column is read, from its start towards its end.
#[derive(Debug, Clone)]
pub(crate) struct Windows {
    file: NearFile,
    most: u64,
    last: Arc<Mutex<Window>>,
}

/// The bytes that were read last.
#[derive(Debug, Default)]
struct Window {
    start: u64,
    bytes: Bytes,
    /// Bytes that are read at least, while reads follow each other.
    wanted: u64,
}

/// A reader of such a file from an offset on.
#[derive(Debug)]
pub(crate) struct WindowRead {
    windows: Windows,
    at: u64,
}

/// The reader that a decoder gets.
pub(crate) enum ColumnRead {
    Read(bytes::buf::Reader<Bytes>),
    Near(NearRead),
    Windows(WindowRead),
}

impl ColumnBytes {
    /// A file that is read page by page.
    pub(crate) fn near(store: &StoreRef, path: &str, size: u64) -> Self {
        Self::Near(NearFile {
            store: store.clone(),
            path: path.to_owned(),
            size,
            runtime: Handle::current(),
            failure: Failure::default(),
        })
    }

    /// A file that one column is read of, in windows of so many bytes at most.
    pub(crate) fn windows(store: &StoreRef, path: &str, size: u64, runtime: &Handle, most: u64) -> Self {
        Self::Windows(Windows {
            file: NearFile {
                store: store.clone(),
                path: path.to_owned(),
                size,
                runtime: runtime.clone(),
                failure: Failure::default(),
            },
            most,
            last: Arc::default(),
        })
    }

    /// The slot for the store's error.
    pub(crate) fn failure(&self) -> Failure {
        match self {
            Self::Read(_) => Failure::default(),
            Self::Near(file) => file.failure.clone(),
            Self::Windows(windows) => windows.file.failure.clone(),
        }
    }
}

impl Length for ColumnBytes {
    fn len(&self) -> u64 {
        match self {
            Self::Read(pieces) => pieces.size,
            Self::Near(file) => file.size,
            Self::Windows(windows) => windows.file.size,
        }
    }
}

impl ChunkReader for ColumnBytes {
    type T = ColumnRead;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(match self {
            Self::Read(pieces) => ColumnRead::Read(pieces.behind(start)?.reader()),
            Self::Near(file) => ColumnRead::Near(NearRead {
                file: file.clone(),
                at: start,
                window: Bytes::new(),
            }),
            Self::Windows(windows) => ColumnRead::Windows(WindowRead {
                windows: windows.clone(),
                at: start,
            }),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let found = match self {
            Self::Read(pieces) => pieces.behind(start)?,
            Self::Near(file) => file.read(start, length as u64)?,
            Self::Windows(windows) => windows.read(start, length as u64)?,
        };
        if found.len() < length {
            return Err(ParquetError::EOF(format!(
                "expected {length} bytes at {start}, found {}",
                found.len()
            )));
        }
        Ok(found.slice(..length))
    }
}

impl Pieces {
    pub(crate) fn new(size: u64, mut pieces: Vec<(u64, Bytes)>) -> Self {
        pieces.sort_by_key(|(start, _)| *start);
        Self { size, pieces }
    }

    fn behind(&self, start: u64) -> parquet::errors::Result<Bytes> {
        let after = self.pieces.partition_point(|(first, _)| *first <= start);
        let piece = after.checked_sub(1).and_then(|at| self.pieces.get(at));
        let inside = piece.and_then(|(first, bytes)| {
            let skip = usize::try_from(start - first).ok()?;
            (skip <= bytes.len()).then(|| bytes.slice(skip..))
        });
        inside.ok_or_else(|| ParquetError::EOF(format!("byte {start} is outside of the columns that are read")))
    }
}

impl NearFile {
    /// The bytes of a range, as far as the file goes.
    fn read(&self, start: u64, length: u64) -> parquet::errors::Result<Bytes> {
        let end = start.saturating_add(length).min(self.size);
        if start >= end {
            return Ok(Bytes::new());
        }
        let read = self.runtime.block_on(self.store.get_ranges(&self.path, &[start..end]));
        let mut read = read.map_err(|error| self.failure.tell(error))?;
        Ok(read.pop().unwrap_or_default())
    }
}

impl Windows {
    /// The bytes from an offset on: so many, fewer at the file's end.
    fn read(&self, start: u64, length: u64) -> parquet::errors::Result<Bytes> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let have = last.bytes.len() as u64;
        let skip = start.checked_sub(last.start).filter(|skip| *skip <= have);
        let inside = skip.filter(|skip| have - skip >= length.min(self.file.size.saturating_sub(start)));
        if inside.is_none() {
            // What lies behind the last window, or across its end, follows it.
            let grown = last.wanted.saturating_mul(4).min(self.most);
            last.wanted = if skip.is_some() { grown.max(WINDOW) } else { WINDOW };
            // Of a long page its bytes and the next header: the window's end would lie within the next page, which were read twice then.
            let is_long = length >= last.wanted / 4;
            let wanted = if is_long {
                length.saturating_add(WINDOW)
            } else {
                last.wanted
            };
            let bytes = self.file.read(start, wanted)?;
            (last.start, last.bytes) = (start, bytes);
        }
        let skip = usize::try_from(start - last.start)
            .unwrap_or(usize::MAX)
            .min(last.bytes.len());
        let found = last.bytes.slice(skip..);
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(found.len());
        Ok(found.slice(..length))
    }
}

impl Read for WindowRead {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let found = self.windows.read(self.at, into.len() as u64).map_err(Error::other)?;
        let taken = found.len().min(into.len());
        if let Some(into) = into.get_mut(..taken) {
            into.copy_from_slice(found.get(..taken).unwrap_or_default());
        }
        self.at = self.at.saturating_add(taken as u64);
        Ok(taken)
    }
}

impl Read for NearRead {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.window.is_empty() {
            let wanted = WINDOW.max(into.len() as u64);
            self.window = self.file.read(self.at, wanted).map_err(Error::other)?;
            self.at = self.at.saturating_add(self.window.len() as u64);
        }
        let taken = self.window.len().min(into.len());
        let from = self.window.split_to(taken);
        if let Some(into) = into.get_mut(..taken) {
            into.copy_from_slice(&from);
        }
        Ok(taken)
    }
}

impl Read for ColumnRead {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Read(bytes) => bytes.read(into),
            Self::Near(near) => near.read(into),
            Self::Windows(windows) => windows.read(into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that are read of a column of such pages, each of them behind a header of 40 bytes.
    fn read_of(page: usize, count: usize) -> u64 {
        let whole: Vec<u8> = (0..(page + 40) * count).map(|at| (at % 251) as u8).collect();
        let store: StoreRef = Arc::new(esker_store::memory::private().unwrap());
        esker_store::block_on(store.put("column", whole.clone().into())).unwrap();
        let runtime = esker_store::block_on(async { Ok::<_, StoreError>(Handle::current()) }).unwrap();
        let column = ColumnBytes::windows(&store, "column", whole.len() as u64, &runtime, 1 << 20);
        let ColumnBytes::Windows(windows) = &column else {
            panic!("expected windows");
        };
        let (mut reads, mut seen) = (0, None);
        let mut look = || {
            let last = windows.last.lock().unwrap();
            if seen.replace((last.start, last.bytes.len())) != Some((last.start, last.bytes.len())) {
                reads += last.bytes.len() as u64;
            }
        };
        for number in 0..count {
            let start = (page + 40) * number;
            let mut header = [0; 40];
            column.get_read(start as u64).unwrap().read_exact(&mut header).unwrap();
            assert_eq!(header, whole[start..start + 40]);
            look();
            let body = column.get_bytes(start as u64 + 40, page).unwrap();
            assert_eq!(body, whole[start + 40..start + 40 + page]);
            look();
        }
        reads
    }

    #[test]
    fn test_pages_that_follow_each_other_are_read_about_once() {
        for page in [
            100,
            4000,
            70_000,
            270_000,
            520_000,
            (1 << 20) - 20,
            (1 << 20) + 100,
            3 << 20,
        ] {
            let count = (8 << 20) / page + 3;
            let whole = ((page + 40) * count) as u64;
            let read = read_of(page, count);
            assert!(read <= whole + whole / 5, "{page}: {read} of {whole}");
        }
    }
}
