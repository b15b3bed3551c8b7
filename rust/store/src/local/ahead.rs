//! Cold ranges, which wait for the disk: what is done for them that would be a waste for those in the page cache.
//!
//! Short ranges would be fetched from the disk one at a time, where the disk can fetch many at once: so the system is told of all of them
//! before the first one is read. It reads ahead within a long range by itself.

use std::fs::File;
use std::ops::Range;

/// A range of at least this many bytes is left to the system's own readahead.
#[cfg(target_os = "linux")]
const LONG: u64 = 256 << 10;

/// One range of fewer bytes is read where it is wanted, cold or not.
#[cfg(target_os = "linux")]
const SHORT: u64 = 32 << 10;

/// Whether some of the ranges seem not to be in the page cache. A few samples tell warm from cold: to ask for each range would cost as much as
/// reading it from the page cache.
#[cfg(target_os = "linux")]
pub(super) fn are_cold(file: &File, runs: &[Range<u64>]) -> bool {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
        return false;
    };
    if runs.len() == 1 && last.end - first.start < SHORT {
        return false;
    }
    let middle = runs.get(runs.len() / 2).unwrap_or(first);
    let samples = [first.start, middle.start, last.end.saturating_sub(1)];
    samples.iter().any(|at| is_cold(file, *at))
}

/// Not known on other systems.
#[cfg(not(target_os = "linux"))]
pub(super) fn are_cold(_: &File, _: &[Range<u64>]) -> bool {
    false
}

/// Asks the system to fetch the short ones of cold ranges in parallel. Only a hint: errors are ignored.
#[cfg(target_os = "linux")]
pub(super) fn fetch_ahead(file: &File, runs: &[Range<u64>]) {
    use std::num::NonZeroU64;

    use rustix::fs::{fadvise, Advice};

    if runs.len() < 2 {
        return;
    }
    for run in runs.iter().filter(|run| run.end - run.start < LONG) {
        let _ = fadvise(file, run.start, NonZeroU64::new(run.end - run.start), Advice::WillNeed);
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
