//! Replays `fuzz/corpus` through the fuzz bodies, and seeded mutations of it.
//!
//! `ESKER_FUZZ_MUTATIONS` is how many mutations of each file are run.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use esker_codec::fuzz::allocations::{peak_of, CountingAllocator};
use esker_codec::fuzz::mutation::{mutate, Numbers};
use esker_codec::fuzz::TARGETS;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The most memory of a body, in bytes: 64 Ki values of 8 bytes, decoded twice, and what the encoders need.
const MOST: usize = 8 << 20;

fn corpus(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn test_the_corpus_and_its_mutations_give_values_or_errors() {
    let mutations = std::env::var("ESKER_FUZZ_MUTATIONS").map_or(300, |mutations| mutations.parse().unwrap());
    let mut numbers = Numbers(1);
    for (name, body) in TARGETS {
        let files = corpus(name);
        assert!(!files.is_empty(), "{name} has no corpus");
        let run = |bytes: &[u8]| {
            let ((), peak) = peak_of(|| body(bytes));
            assert!(
                peak <= MOST + 300 * bytes.len(),
                "{name}: {} bytes made it hold {peak}",
                bytes.len()
            );
        };
        run(&[]);
        for file in files {
            let whole = std::fs::read(file).unwrap();
            run(&whole);
            (0..whole.len().min(300)).for_each(|end| run(whole.get(..end).unwrap()));
            for _ in 0..mutations {
                let mut bytes = whole.clone();
                for _ in 0..=numbers.below(3) {
                    mutate(&mut bytes, &mut numbers);
                }
                run(&bytes);
            }
        }
    }
}
