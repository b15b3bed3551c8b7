//! Replays `fuzz/corpus` through the fuzz bodies: whole, cut anywhere, and with bits flipped.
//!
//! `ESKER_FUZZ_FLIPS` is how often bits are flipped in each input.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::Path;
use std::time::{Duration, Instant};

use esker_codec::fuzz::allocations::{peak_of, CountingAllocator};
use esker_codec::fuzz::mutation::{flip_bits, mutate, Numbers};
use esker_table::fuzz::{run, Outcome, TARGETS};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// How long one input may take.
const SLOWEST: Duration = Duration::from_secs(5);

/// The most memory for reading an input: some multiples of its size, decoded.
fn most(input: usize) -> usize {
    (1 << 20) + 256 * input
}

fn checked(target: &str, name: &str, bytes: &[u8]) -> Outcome {
    let start = Instant::now();
    let (outcome, peak) = peak_of(|| run(target, bytes));
    let limit = most(bytes.len());
    assert!(
        peak <= limit,
        "{target}/{name}: {} bytes made it hold {peak}, not {limit}",
        bytes.len()
    );
    assert!(start.elapsed() < SLOWEST, "{target}/{name}: {:?}", start.elapsed());
    assert!(
        !outcome.differs,
        "{target}/{name}: not what it was after it was written"
    );
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
                assert!(outcome.error.is_some(), "{target}/{name}");
            } else {
                assert!(outcome.error.is_none(), "{target}/{name}: {:?}", outcome.error);
                assert!(outcome.records > 0, "{target}/{name}");
            }
        }
    }
}

/// Messages may end after any of their fields; what ends with its size or a mark may not.
#[test]
fn test_inputs_cut_anywhere_are_refused_or_shorter() {
    for target in TARGETS {
        let is_framed = !matches!(target, "lance_transaction" | "lance_row_ids" | "lance_row_versions");
        for (name, bytes) in corpus(target) {
            for length in 0..bytes.len() {
                let outcome = checked(target, &name, &bytes[..length]);
                assert!(
                    outcome.error.is_some() || !is_framed,
                    "{target}/{name} cut to {length} was read"
                );
            }
        }
    }
}

#[test]
fn test_mutations_end_in_a_part_of_a_table_or_in_an_error() {
    let flips = std::env::var("ESKER_FUZZ_FLIPS").map_or(100, |flips| flips.parse::<usize>().unwrap());
    for target in TARGETS {
        for (index, (name, bytes)) in corpus(target).into_iter().enumerate() {
            let mut numbers = Numbers(1000 + index as u64);
            for round in 0..flips {
                let mut damaged = bytes.clone();
                if round % 2 == 0 {
                    mutate(&mut damaged, &mut numbers);
                } else {
                    flip_bits(&mut damaged, &mut numbers);
                }
                checked(target, &name, &damaged);
            }
        }
    }
}
