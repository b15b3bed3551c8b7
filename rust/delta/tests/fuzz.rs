//! Replays `fuzz/corpus` through the fuzz bodies: whole, cut, and with bits flipped.
//!
//! `ESKER_FUZZ_FLIPS` is how often bits are flipped in each input.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::Path;
use std::time::{Duration, Instant};

use esker_codec::fuzz::allocations::{peak_of, CountingAllocator};
use esker_codec::fuzz::mutation::{flip_bits, mutate, Numbers};
use esker_delta::fuzz::{run, Outcome, TARGETS};
use esker_delta::DeltaError;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// How long one input may take.
const SLOWEST: Duration = Duration::from_secs(5);

/// The most memory for reading an input: some multiples of its size, parsed and in columns. Other threads' memory is not counted.
fn most(input: usize) -> usize {
    (4 << 20) + 256 * input
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
                assert!(outcome.records > 0, "{target}/{name}");
            }
        }
    }
}

#[test]
fn test_a_checkpoint_cut_anywhere_is_refused() {
    for (name, bytes) in corpus("delta_checkpoint") {
        for length in (0..bytes.len()).step_by((bytes.len() / 50).max(1)) {
            let outcome = checked("delta_checkpoint", &name, &bytes[..length]);
            assert!(!outcome.errors.is_empty(), "{name} cut to {length}");
        }
    }
}

#[test]
fn test_mutations_end_in_actions_or_in_an_error() {
    let flips = std::env::var("ESKER_FUZZ_FLIPS").map_or(100, |flips| flips.parse::<usize>().unwrap());
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
                let store = |error: &&DeltaError| matches!(error, DeltaError::Store(_));
                let failed: Vec<_> = outcome.errors.iter().filter(store).collect();
                assert!(failed.is_empty(), "{target}/{name}: {failed:?}");
            }
            assert!(bad > 0 || bytes.len() < 100, "{target}/{name}: nothing was refused");
        }
    }
}
