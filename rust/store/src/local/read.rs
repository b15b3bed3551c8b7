//! Reads ranges of files into buffers that are not zeroed first.
//!
//! No file stays open between calls. A path may be replaced at any time, so a cached handle would have to be compared with the path at each
//! use, and that comparison costs nearly as much as opening the file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use tokio::runtime::Handle;

use super::ahead::{are_cold, fetch_ahead};
use super::{shown, unfinished};
use crate::coalesce::{coalesce, Coalesced};
use crate::error::{Result, StoreError};
use crate::object::short_read;
use crate::stats::StatsCounters;
use crate::store::Tail;

/// Ranges with a gap of at most this many bytes are joined: reading the gap costs less than a second read.
const GAP: u64 = 4096;
/// The longest joined read, in bytes: a slice keeps the whole read in memory.
const LIMIT: u64 = 1 << 20;
/// Bytes that are aligned in the file are aligned in memory, up to this many bytes: no value type needs more.
const ALIGNMENT: u64 = 64;

/// Reads that wait for the disk are made by so many threads side by side,
const COLD_READERS: u64 = 4;
/// of which each has so many bytes to read at least.
const COLD_BYTES: u64 = 256 << 10;

pub(super) async fn read_ranges(path: &Path, ranges: &[Range<u64>], stats: &Arc<StatsCounters>) -> Result<Vec<Bytes>> {
    let Coalesced { runs, pieces } = coalesce(&shown(path), ranges, GAP, LIMIT)?;
    if runs.is_empty() {
        return Ok(pieces.iter().map(|_| Bytes::new()).collect());
    }
    let buffers = read_off(open(path)?, path, runs, stats).await?;
    Ok(pieces.iter().map(|piece| piece.cut(&buffers)).collect())
}

/// Reads at once what is in the page cache, and in other threads what waits for the disk, so that the caller's thread decodes something else
/// meanwhile.
async fn read_off(file: File, path: &Path, runs: Vec<Range<u64>>, stats: &Arc<StatsCounters>) -> Result<Vec<Bytes>> {
    let handle = match Handle::try_current() {
        Ok(handle) if are_cold(&file, &runs) => handle,
        _ => return read_runs(&file, path, &runs, stats),
    };
    let (file, shared) = (Arc::new(file), Arc::<Path>::from(path));
    let readers = groups(runs).into_iter().map(|runs| {
        let (file, path, stats) = (file.clone(), shared.clone(), stats.clone());
        handle.spawn_blocking(move || {
            fetch_ahead(&file, &runs);
            read_runs(&file, &path, &runs, &stats)
        })
    });
    let mut buffers = Vec::new();
    for reader in readers.collect::<Vec<_>>() {
        buffers.extend(reader.await.map_err(|error| unfinished(path, "read", error))??);
    }
    Ok(buffers)
}

fn read_runs(file: &File, path: &Path, runs: &[Range<u64>], stats: &StatsCounters) -> Result<Vec<Bytes>> {
    let mut buffers = Vec::with_capacity(runs.len());
    for run in runs {
        buffers.push(read_run(file, path, run)?);
        stats.add_read(run.end - run.start);
    }
    Ok(buffers)
}

/// Cuts ranges into groups of about as many bytes each, in their order.
fn groups(runs: Vec<Range<u64>>) -> Vec<Vec<Range<u64>>> {
    let all: u64 = runs.iter().map(|run| run.end - run.start).sum();
    let share = all.div_ceil(COLD_READERS).max(COLD_BYTES);
    let mut groups: Vec<Vec<Range<u64>>> = Vec::new();
    let mut left = 0;
    for run in runs {
        if left == 0 {
            groups.push(Vec::new());
            left = share;
        }
        left = left.saturating_sub(run.end - run.start);
        if let Some(group) = groups.last_mut() {
            group.push(run);
        }
    }
    groups
}

pub(super) async fn read_tail(path: &Path, nbytes: u64, stats: &Arc<StatsCounters>) -> Result<Tail> {
    let file = open(path)?;
    let size = file_size(&file, path)?;
    let run = size.saturating_sub(nbytes)..size;
    let mut buffers = read_off(file, path, vec![run], stats).await?;
    let bytes = buffers.pop().unwrap_or_default();
    Ok(Tail { bytes, size })
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| sort_read_error(path, "open", error))
}

fn file_size(file: &File, path: &Path) -> Result<u64> {
    let found = file
        .metadata()
        .map_err(|error| sort_read_error(path, "look up", error))?;
    if found.is_file() {
        Ok(found.len())
    } else {
        Err(not_a_file(path))
    }
}

fn read_run(file: &File, path: &Path, run: &Range<u64>) -> Result<Bytes> {
    let len = run.end - run.start;
    let too_long = || StoreError::corrupt(shown(path), format!("a read of {len} bytes does not fit into memory"));
    let wanted = usize::try_from(len).map_err(|_| too_long())?;
    // Checked against the file's size: a long range before memory is allocated for it, an offset beyond i64 before it is used.
    if len > LIMIT || i64::try_from(run.end).is_err() {
        let size = file_size(file, path)?;
        if run.end > size {
            return Err(short_read(&shown(path), run, size));
        }
    }
    let mut buffer: Vec<u8> = Vec::new();
    buffer
        .try_reserve_exact(wanted.saturating_add(63))
        .map_err(|_| too_long())?;
    let address = buffer.as_ptr().addr() as u64;
    let skipped = usize::try_from(run.start.wrapping_sub(address) % ALIGNMENT).unwrap_or(0);
    buffer.resize(skipped, 0);
    let end = skipped.saturating_add(wanted);
    while buffer.len() < end {
        let at = run.start + (buffer.len() - skipped) as u64;
        match rustix::io::pread(file, spare_capacity(&mut buffer), at) {
            Ok(0) => return Err(short_read(&shown(path), run, file_size(file, path)?)),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(sort_read_error(path, "read", error.into())),
        }
    }
    buffer.truncate(end);
    Ok(Bytes::from(buffer).slice(skipped..))
}

/// The error for a path that is a folder or anything else but a file: not found, as a store has no such object.
pub(super) fn not_a_file(path: &Path) -> StoreError {
    StoreError::NotFound {
        path: shown(path),
        message: "expected a file, found a folder or something else".into(),
    }
}

/// The error of a failed read. Where a parent in the path is a file, or the path is a folder, there is no such object.
pub(super) fn sort_read_error(path: &Path, doing: &str, error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::IsADirectory => not_a_file(path),
        io::ErrorKind::NotADirectory => {
            let message = "expected an object in a folder, found a file in the folder's place".into();
            StoreError::NotFound {
                path: shown(path),
                message,
            }
        }
        _ => StoreError::from_io(shown(path), doing, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_groups_have_all_ranges_in_their_order_and_about_as_many_bytes() {
        let runs = |lengths: &[u64]| -> Vec<Range<u64>> {
            let starts = (0_u64..).map(|place| place << 30);
            starts.zip(lengths).map(|(start, len)| start..start + len).collect()
        };
        let sizes = |lengths: &[u64]| -> Vec<usize> {
            let found = groups(runs(lengths));
            assert_eq!(found.concat(), runs(lengths));
            found.iter().map(Vec::len).collect()
        };
        assert_eq!(sizes(&[1000; 20]), [20]);
        assert_eq!(sizes(&[100_000; 20]), [5, 5, 5, 5]);
        assert_eq!(sizes(&[1 << 20; 3]), [1, 1, 1]);
        assert_eq!(sizes(&[1 << 20, 5, 5, 5]), [1, 3]);
        assert_eq!(sizes(&[]), [0; 0]);
    }
}
