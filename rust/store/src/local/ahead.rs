//! Asking the system for bytes before they are read.
//!
//! What lies in the page cache is read one range after the other, as fast as memory. What does not would be fetched from the disk one range
//! after the other, while the disk can fetch many at once; so when short ranges turn out to be cold, the system is told of all of them
//! first. A long range it reads ahead by itself, and better.

use std::fs::File;
use std::ops::Range;

/// A range of at least this many bytes is left to the system's own reading ahead.
#[cfg(target_os = "linux")]
const LONG: u64 = 256 << 10;

/// Has the ranges fetched side by side where they are not in memory yet. It helps or it does not; it never fails.
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
    // A few samples tell warm from cold: to ask for each range would cost as much as reading it.
    let middle = runs.get(runs.len() / 2).unwrap_or(first);
    let samples = [first.start, middle.start, last.end.saturating_sub(1)];
    if samples.iter().any(|at| is_cold(file, *at)) {
        for run in runs.iter().filter(|run| run.end - run.start < LONG) {
            let _ = fadvise(file, run.start, NonZeroU64::new(run.end - run.start), Advice::WillNeed);
        }
    }
}

/// Has the ranges fetched side by side where the system can be told to; here it cannot.
#[cfg(not(target_os = "linux"))]
pub(super) fn fetch_ahead(_: &File, _: &[Range<u64>]) {}

/// Whether reading the byte would wait for the disk.
#[cfg(target_os = "linux")]
fn is_cold(file: &File, at: u64) -> bool {
    use std::io::IoSliceMut;

    use rustix::io::{preadv2, Errno, ReadWriteFlags};

    let mut byte = [0_u8];
    let read = preadv2(file, &mut [IoSliceMut::new(&mut byte)], at, ReadWriteFlags::NOWAIT);
    matches!(read, Err(Errno::AGAIN))
}
