//! Look-ups in the row-id index: `make bench-row-ids`.
//!
//! Ten million rows in a thousand fragments, as they were appended and with every tenth one updated into one more fragment; and the worst case, ids in
//! no order. One core; the best of several runs counts.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use esker_table::row_ids::{RowIdIndex, RowIdIndexBuilder, RowIdSequence};

const ROWS: u64 = 10_000_000;
const FRAGMENTS: u64 = 1000;
const LOOK_UPS: u64 = 1_000_000;

fn best(runs: usize, mut run: impl FnMut()) -> Duration {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..runs).map(|_| time(&mut run)).min().unwrap()
}

fn build(encoded: &[Bytes]) -> RowIdIndex {
    let mut builder = RowIdIndexBuilder::default();
    for (place, bytes) in encoded.iter().enumerate() {
        let ids = RowIdSequence::decode(bytes, "bench").unwrap();
        builder.push(place as u32, &ids, "bench").unwrap();
    }
    builder.build()
}

fn measure(name: &str, sequences: &[RowIdSequence]) {
    let encoded: Vec<Bytes> = sequences.iter().map(|ids| ids.encode().into()).collect();
    let bytes: usize = encoded.iter().map(Bytes::len).sum();
    let built = best(5, || drop(black_box(build(&encoded))));
    let index = build(&encoded);
    let ids: Vec<u64> = (0..LOOK_UPS)
        .map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % ROWS)
        .collect();
    let mut found = Vec::new();
    let mut rows = 0;
    let taken = best(5, || {
        rows = 0;
        for id in &ids {
            index.candidates(*id, &mut found);
            rows += found.len();
        }
    });
    let speed = LOOK_UPS as f64 / taken.as_secs_f64() / 1e6;
    let per_id = rows as f64 / LOOK_UPS as f64;
    println!(
        "{name:<28} {:>9} {bytes:>12} {:>12} {:>10.2} {speed:>12.1} {per_id:>10.2}",
        index.num_segments(),
        index.memory(),
        built.as_secs_f64() * 1000.0
    );
}

fn main() {
    let per_fragment = ROWS / FRAGMENTS;
    let appended: Vec<RowIdSequence> = (0..FRAGMENTS)
        .map(|fragment| RowIdSequence::from_range(fragment * per_fragment..(fragment + 1) * per_fragment))
        .collect();
    println!(
        "{:<28} {:>9} {:>12} {:>12} {:>10} {:>12} {:>10}",
        "10,000,000 rows", "segments", "encoded B", "index B", "build ms", "M ids / s", "rows / id"
    );
    measure("as appended", &appended);
    let mut updated = appended.clone();
    let tenth: Vec<u64> = (0..ROWS).filter(|id| id % 10 == 3).collect();
    updated.push(RowIdSequence::from_ids(&tenth));
    measure("every tenth updated", &updated);
    let mut many = appended.clone();
    for part in tenth.chunks(10_000) {
        many.push(RowIdSequence::from_ids(part));
    }
    measure("in a hundred updates", &many);
    let mut scattered = appended;
    for update in 0..20_u64 {
        let ids: Vec<u64> = (0..50_000)
            .map(|number: u64| (number * 20 + update).wrapping_mul(0x9e37_79b9) % ROWS)
            .collect();
        scattered.push(RowIdSequence::from_ids(&ids));
    }
    measure("twenty updates in no order", &scattered);
}
