//! Replays `fuzz/corpus/open_and_read` through the fuzz body: whole, cut, and with bits flipped.
//!
//! `ESKER_FUZZ_FLIPS` is how often bits are flipped in each file; `make check` has time for more of them than a debug build.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use esker_codec::fuzz::allocations::{peak_of, CountingAllocator};
use esker_codec::fuzz::mutation::{flip_bits, mutate, Numbers};
use esker_file::fuzz::{open_and_read, Outcome};
use esker_file::FileError;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// How long one file may take.
const SLOWEST: Duration = Duration::from_secs(5);

/// The most memory for reading a file: some multiples of its size, and of its rows.
fn most(file: usize, rows: u64) -> usize {
    (1 << 20) + 64 * file + 1024 * usize::try_from(rows.min(5000)).unwrap()
}

fn run(name: &str, bytes: &[u8]) -> Outcome {
    let file = Bytes::copy_from_slice(bytes);
    let start = Instant::now();
    let (outcome, peak) = peak_of(|| open_and_read(file));
    let limit = most(bytes.len(), outcome.num_rows);
    assert!(
        peak <= limit,
        "{name}: {} bytes made it hold {peak}, not {limit}",
        bytes.len()
    );
    assert!(start.elapsed() < SLOWEST, "{name}: {:?}", start.elapsed());
    outcome
}

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/open_and_read");
    let read = |path: std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read(path).unwrap())
    };
    let mut files: Vec<_> = folder
        .read_dir()
        .unwrap()
        .map(|entry| read(entry.unwrap().path()))
        .collect();
    files.sort();
    assert!(files.len() > 100);
    files
}

/// Runs something for each file, on two cores; says which files it failed for.
fn for_each_file(work: impl Fn(usize, &str, &[u8]) + Sync) {
    let (files, next) = (corpus(), AtomicUsize::new(0));
    let failed = std::sync::Mutex::new(Vec::new());
    let worker = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some((name, bytes)) = files.get(index) else {
            return;
        };
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(index, name, bytes)));
        if done.is_err() {
            failed.lock().unwrap().push(name.as_str());
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(worker);
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "failed: {failed:?}");
}

#[test]
fn test_whole_files_are_read() {
    for_each_file(|_, name, bytes| {
        let outcome = run(name, bytes);
        let unsupported = |error: &&FileError| matches!(error, FileError::Unsupported(_));
        let errors: Vec<_> = outcome.errors.iter().filter(|error| !unsupported(error)).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        let is_empty = name.starts_with("empty") || outcome.errors.len() > errors.len();
        assert!(outcome.bytes > 0 || is_empty, "{name}");
    });
}

#[test]
fn test_files_cut_anywhere_are_refused() {
    for_each_file(|_, name, bytes| {
        for length in 0..bytes.len() {
            assert!(!run(name, &bytes[..length]).errors.is_empty(), "{name} cut to {length}");
        }
    });
}

#[test]
fn test_flipped_bits_end_in_rows_or_in_an_error() {
    let flips = std::env::var("ESKER_FUZZ_FLIPS").map_or(100, |flips| flips.parse().unwrap());
    for_each_file(|index, name, bytes| {
        let mut numbers = Numbers(index as u64);
        let (mut good, mut bad) = (0, 0);
        for round in 0..flips {
            let mut damaged = bytes.to_vec();
            if round % 4 == 3 {
                mutate(&mut damaged, &mut numbers);
            } else {
                flip_bits(&mut damaged, &mut numbers);
            }
            let outcome = run(name, &damaged);
            good += usize::from(outcome.bytes > 0);
            bad += usize::from(!outcome.errors.is_empty());
        }
        // Or else the damage goes unnoticed, or nothing but the footer is looked at.
        assert!(bad > flips / 50, "{name}: {bad} of {flips} were refused");
        let is_whole = run(name, bytes).bytes > 0;
        assert!(!is_whole || good > flips / 50, "{name}: {good} of {flips} were read");
    });
}
