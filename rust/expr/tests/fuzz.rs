//! Replays `fuzz/corpus/arrow_expression` and `fuzz/corpus/json` through their fuzz bodies: whole, cut at every length, and mutated.
//!
//! `ESKER_FUZZ_FLIPS` is the number of mutations of each input.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::Path;
use std::time::{Duration, Instant};

use esker_codec::fuzz::allocations::{peak_of, CountingAllocator};
use esker_codec::fuzz::mutation::{flip_bits, mutate, Numbers};
use esker_expr::fuzz::{run, TARGETS};
use proptest::prelude::*;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// How long one input may take.
const SLOWEST: Duration = Duration::from_secs(5);

/// The most memory for reading an input, in bytes. Planning on a thread of its own is not counted.
fn most(input: usize) -> usize {
    (4 << 20) + 256 * input
}

fn checked(target: &str, name: &str, bytes: &[u8]) -> bool {
    let start = Instant::now();
    let (taken, peak) = peak_of(|| run(target, bytes));
    assert!(peak <= most(bytes.len()), "{target}/{name}: held {peak}");
    assert!(start.elapsed() < SLOWEST, "{target}/{name}: {:?}", start.elapsed());
    taken
}

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let read = |path: std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read(path).unwrap())
    };
    let entries = folder.read_dir().unwrap();
    let mut files: Vec<_> = entries.map(|entry| read(entry.unwrap().path())).collect();
    files.sort();
    assert!(!files.is_empty(), "{target}");
    files
}

#[test]
fn test_whole_inputs_are_taken() {
    for target in TARGETS {
        for (name, bytes) in corpus(target) {
            assert!(checked(target, &name, &bytes), "{target}/{name}");
        }
    }
}

#[test]
fn test_an_expression_cut_anywhere_is_refused() {
    for target in TARGETS {
        for (name, bytes) in corpus(target) {
            for length in (0..bytes.len()).step_by((bytes.len() / 300).max(1)) {
                let taken = checked(target, &name, &bytes[..length]);
                // The start of a JSON text may be a text of its own, as 1 is of 12.
                assert!(!taken || target == "json", "{name} cut to {length}");
            }
        }
    }
}

#[test]
fn test_damage_ends_in_an_expression_or_in_an_error() {
    let flips = std::env::var("ESKER_FUZZ_FLIPS").map_or(300, |flips| flips.parse::<usize>().unwrap());
    for target in TARGETS {
        for (index, (name, bytes)) in corpus(target).into_iter().enumerate() {
            let mut numbers = Numbers(1000 + index as u64);
            let refused = (0..flips).filter(|round| {
                let mut damaged = bytes.clone();
                if round % 2 == 0 {
                    mutate(&mut damaged, &mut numbers);
                } else {
                    flip_bits(&mut damaged, &mut numbers);
                }
                !checked(target, &name, &damaged)
            });
            assert!(refused.count() > 0, "{target}/{name}: nothing was refused");
        }
    }
}

proptest! {
    #[test]
    fn test_any_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(!run("arrow_expression", &bytes));
    }

    #[test]
    fn test_any_bytes_in_an_arrow_file_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut file = b"ARROW1\0\0".to_vec();
        file.extend_from_slice(&bytes);
        file.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_le_bytes());
        file.extend_from_slice(b"ARROW1");
        prop_assert!(!run("arrow_expression", &file));
    }
}
