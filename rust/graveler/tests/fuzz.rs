//! Replays `fuzz/corpus` through the fuzz bodies: whole, cut, and with bits flipped.
//!
//! `ESKER_FUZZ_FLIPS` is how often bits are flipped in each input.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::Path;
use std::time::{Duration, Instant};

use esker_codec::fuzz::allocations::{peak_of, CountingAllocator};
use esker_codec::fuzz::mutation::{flip_bits, mutate, Numbers};
use esker_graveler::fuzz::{run, Outcome, TARGETS};
use esker_graveler::GravelerError;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// How long one input may take.
const SLOWEST: Duration = Duration::from_secs(5);

/// The most memory for reading an input: some multiples of its size, uncompressed, and the records read from it.
fn most(input: usize, read: usize) -> usize {
    (2 << 20) + 128 * input + 4 * read
}

fn checked(target: &str, name: &str, bytes: &[u8]) -> Outcome {
    let start = Instant::now();
    let (outcome, peak) = peak_of(|| run(target, bytes));
    let limit = most(bytes.len(), outcome.bytes);
    assert!(
        peak <= limit,
        "{target}/{name}: {} bytes made it hold {peak}, not {limit}",
        bytes.len()
    );
    assert!(start.elapsed() < SLOWEST, "{target}/{name}: {:?}", start.elapsed());
    outcome
}

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
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
    assert!(!files.is_empty(), "{target}");
    files
}

#[test]
fn test_whole_inputs_are_read() {
    for target in TARGETS {
        for (name, bytes) in corpus(target) {
            let outcome = checked(target, &name, &bytes);
            if name.starts_with("bad_") {
                assert!(!outcome.errors.is_empty(), "{target}/{name}");
            } else {
                assert!(outcome.errors.is_empty(), "{target}/{name}: {:?}", outcome.errors);
                assert!(outcome.records > 0 || name.ends_with("_0"), "{target}/{name}");
            }
        }
    }
}

#[test]
fn test_tables_cut_anywhere_are_refused() {
    for (name, bytes) in corpus("sstable") {
        // Every length of a small input, some of a large one.
        let step = (bytes.len() / 4000).max(1);
        for length in (0..bytes.len()).step_by(step) {
            let outcome = checked("sstable", &name, &bytes[..length]);
            assert!(!outcome.errors.is_empty(), "{name} cut to {length}");
        }
    }
}

#[test]
fn test_a_flipped_bit_of_a_table_is_seen() {
    let flips = std::env::var("ESKER_FUZZ_FLIPS").map_or(100, |flips| flips.parse().unwrap());
    for (index, (name, bytes)) in corpus("sstable").into_iter().enumerate() {
        let whole = checked("sstable", &name, &bytes);
        let mut numbers = Numbers(index as u64);
        for _ in 0..flips {
            let mut damaged = bytes.clone();
            flip_bits(&mut damaged, &mut numbers);
            let outcome = checked("sstable", &name, &damaged);
            // All bytes but the zeros between the handles and the version are covered by a checksum or have only one valid value.
            assert!(
                !outcome.errors.is_empty() || (outcome.records, outcome.bytes) == (whole.records, whole.bytes),
                "{name}"
            );
        }
    }
}

#[test]
fn test_mutations_end_in_records_or_in_an_error() {
    let flips = std::env::var("ESKER_FUZZ_FLIPS").map_or(300, |flips| flips.parse::<usize>().unwrap());
    for target in TARGETS {
        for (index, (name, bytes)) in corpus(target).into_iter().enumerate() {
            let mut numbers = Numbers(1000 + index as u64);
            let mut bad = 0;
            for round in 0..flips {
                let mut damaged = bytes.clone();
                if round % 2 == 0 {
                    mutate(&mut damaged, &mut numbers);
                } else {
                    flip_bits(&mut damaged, &mut numbers);
                }
                let outcome = checked(target, &name, &damaged);
                bad += usize::from(!outcome.errors.is_empty());
                let store = |error: &&GravelerError| matches!(error, GravelerError::Store(_));
                let failed: Vec<_> = outcome.errors.iter().filter(store).collect();
                assert!(failed.is_empty(), "{target}/{name}: {failed:?}");
            }
            assert!(bad > 0 || bytes.is_empty(), "{target}/{name}: nothing was refused");
        }
    }
}
