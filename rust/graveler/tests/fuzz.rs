//! Replays `fuzz/corpus/sstable` through the fuzz body: whole, cut, and changed so that checksums still hold.
//!
//! `ESKER_FUZZ_FLIPS` is how often each file is changed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::Path;

use bytes::Bytes;
use esker_graveler::fuzz::{read_block, read_message, read_table};

/// Small, quick, the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/sstable");
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 4);
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn flips() -> usize {
    std::env::var("ESKER_FUZZ_FLIPS").map_or(300, |flips| flips.parse().unwrap())
}

fn changed(bytes: &[u8], numbers: &mut Numbers) -> Bytes {
    let mut bytes = bytes.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len());
        match numbers.below(3) {
            0 => bytes[at] ^= 1 << numbers.below(8),
            1 => bytes[at] = 0xff,
            _ => bytes.truncate(at.max(1)),
        }
    }
    bytes.into()
}

#[test]
fn test_tables_that_are_cut_or_changed_give_records_or_an_error() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for file in corpus() {
        assert!(read_table(Bytes::from(file.clone())).is_ok());
        for _ in 0..flips() {
            let _ = read_table(changed(&file, &mut numbers));
        }
    }
}

#[test]
fn test_blocks_and_messages_without_a_checksum_give_values_or_an_error() {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    for file in corpus() {
        // The first data block begins the file; as a block of its own it ends anywhere.
        for _ in 0..flips() {
            let start = numbers.below(file.len().min(200));
            let bytes = changed(&file[start..], &mut numbers);
            let _ = read_block(bytes.clone());
            read_message(&bytes);
        }
    }
}
