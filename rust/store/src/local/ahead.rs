//! Readahead: tells the system of cold ranges before they are read (`fadvise`).
//!
//! Ranges are read one after the other. That is as fast as memory for those in the page cache, but cold ones would be fetched from the disk
//! one at a time, where the disk can fetch many at once. So when short ranges turn out to be cold, the system is told of all of them first.
//! It reads ahead within a long range by itself.

use std::fs::File;
use std::ops::Range;

/// A range of at least this many bytes is left to the system's own readahead.
#[cfg(target_os = "linux")]
const LONG: u64 = 256 << 10;

/// Asks the system to fetch the ranges in parallel if they are not in the page cache. Only a hint: errors are ignored.
#[cfg(target_os = "linux")]
pub(super) fn fetch_ahead(file: &File, runs: &[Range<u64>]) {
    use std::num::NonZeroU64;

    use rustix::fs::{fadvise, Advice};

    let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
        return;
    };
    if runs.len() < 2 {
        return;
    }
    // A few samples tell warm from cold: a hint for each range would cost as much as reading it from the page cache.
    let middle = runs.get(runs.len() / 2).unwrap_or(first);
    let samples = [first.start, middle.start, last.end.saturating_sub(1)];
    if samples.iter().any(|at| is_cold(file, *at)) {
        for run in runs.iter().filter(|run| run.end - run.start < LONG) {
            let _ = fadvise(file, run.start, NonZeroU64::new(run.end - run.start), Advice::WillNeed);
        }
    }
}

/// Does nothing on systems without such a hint.
#[cfg(not(target_os = "linux"))]
pub(super) fn fetch_ahead(_: &File, _: &[Range<u64>]) {}

/// Whether the byte is not in the page cache, so that reading it would wait for the disk.
#[cfg(target_os = "linux")]
fn is_cold(file: &File, at: u64) -> bool {
    use std::io::IoSliceMut;

    use rustix::io::{preadv2, Errno, ReadWriteFlags};

    let mut byte = [0_u8];
    let read = preadv2(file, &mut [IoSliceMut::new(&mut byte)], at, ReadWriteFlags::NOWAIT);
    matches!(read, Err(Errno::AGAIN))
}
