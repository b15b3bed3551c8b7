//! SSTables alone: `cargo bench -p esker-graveler --bench tables`.
//!
//! A million entries as data lakes have them. One core; the best of several runs counts. For comparison, the lower bound of any table: hash
//! and Snappy over the same bytes.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use esker_graveler::entry::{AddressType, EntryEncoder, EntryRef};
use esker_graveler::sstable::read::{decode_end, End, IndexCursor, Piece};
use esker_graveler::sstable::{BlockCursor, TableWriter, UserProperties};
use esker_graveler::write::table_of_records;
use sha2::{Digest, Sha256};

const ENTRIES: usize = 1_000_000;
const SEEKS: usize = 100_000;

fn best(runs: usize, mut run: impl FnMut()) -> Duration {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..runs).map(|_| time(&mut run)).min().unwrap()
}

fn mixed(number: usize) -> u64 {
    let mut x = (number as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

struct Parts {
    key: Vec<u8>,
    address: String,
    e_tag: String,
}

fn parts() -> Vec<Parts> {
    let part = |i: usize| Parts {
        key: format!("tables/events/day={:06}/part-{i:011}.parquet", i / 10_000).into_bytes(),
        address: format!("data/gk7b4lj3r3s72mqf/{:016x}{:04x}", mixed(i), i & 0xffff),
        e_tag: format!("{:016x}{:016x}", mixed(2 * i), mixed(2 * i + 1)),
    };
    (0..ENTRIES).map(part).collect()
}

fn entry(number: usize, parts: &Parts) -> EntryRef<'_> {
    EntryRef {
        address: &parts.address,
        address_type: AddressType::Relative,
        last_modified: Some((1_700_000_000 + number as i64, 0)),
        size: (mixed(number) % 100_000_000) as i64,
        e_tag: &parts.e_tag,
        content_type: "",
    }
}

fn report(name: &str, count: usize, taken: Duration, bytes: usize) {
    let seconds = taken.as_secs_f64();
    let rate = count as f64 / seconds / 1e3;
    println!("{name:<44} {rate:>12.0} {:>10.3}", bytes as f64 / seconds / 1e9);
}

fn table(records: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut writer = TableWriter::new();
    for (key, value) in records {
        writer.add(key, value).unwrap();
    }
    writer.finish(&UserProperties::new())
}

/// The data block that may hold a key.
fn block_of(file: &Piece, index: &Bytes, has_partitions: bool, key: &[u8]) -> Bytes {
    let handle = IndexCursor::new(index.clone())
        .unwrap()
        .advance_to(key)
        .unwrap()
        .unwrap();
    let block = file.block(handle).unwrap().unwrap();
    if !has_partitions {
        return block;
    }
    let handle = IndexCursor::new(block).unwrap().advance_to(key).unwrap().unwrap();
    file.block(handle).unwrap().unwrap()
}

fn read(file: &Piece) {
    let End::Known(end) = decode_end(file, file.bytes.len() as u64).unwrap() else {
        return;
    };
    let count = |block: Bytes| {
        let mut cursor = BlockCursor::new(block).unwrap();
        let mut found = 0;
        while cursor.advance().unwrap() {
            found += black_box(cursor.key().unwrap().len() + cursor.value().len());
        }
        found
    };
    let mut top = IndexCursor::new(end.index.clone()).unwrap();
    while let Some(handle) = top.advance().unwrap() {
        let block = file.block(handle).unwrap().unwrap();
        let mut partition = IndexCursor::new(block).unwrap();
        while let Some(handle) = partition.advance().unwrap() {
            black_box(count(file.block(handle).unwrap().unwrap()));
        }
    }
}

fn main() {
    let parts = parts();
    println!("{:<44} {:>12} {:>10}", "", "1,000/s", "GB/s");
    let mut values = Vec::new();
    let taken = best(3, || {
        let mut encoder = EntryEncoder::default();
        values = parts
            .iter()
            .enumerate()
            .map(|(number, parts)| {
                let mut value = Vec::with_capacity(160);
                encoder.encode_value_to(entry(number, parts), &mut value);
                value
            })
            .collect::<Vec<_>>();
    });
    let records: Vec<(Vec<u8>, Vec<u8>)> = parts.into_iter().map(|parts| parts.key).zip(values).collect();
    let bytes = records.iter().map(|(key, value)| key.len() + value.len()).sum();
    report("entries: identity and message", ENTRIES, taken, bytes);

    let whole: Vec<u8> = records
        .iter()
        .flat_map(|(key, value)| [key.clone(), value.clone()].concat())
        .collect();
    report(
        "sha-256 of all bytes",
        ENTRIES,
        best(3, || {
            black_box(Sha256::digest(&whole));
        }),
        bytes,
    );
    let mut encoder = snap::raw::Encoder::new();
    let snappy = best(3, || {
        whole
            .chunks(4096)
            .for_each(|block| drop(black_box(encoder.compress_vec(block))))
    });
    report("snappy of all bytes, 4 KiB at a time", ENTRIES, snappy, bytes);

    let file: Bytes = table(&records).into();
    report("table", ENTRIES, best(3, || drop(black_box(table(&records)))), bytes);
    let named = best(3, || {
        let records = records.iter().map(|(key, value)| (key.as_slice(), value.as_slice()));
        drop(black_box(
            table_of_records("ranges", &BTreeMap::new(), records).unwrap(),
        ));
    });
    report("table with its id", ENTRIES, named, bytes);

    let file = Piece { offset: 0, bytes: file };
    report("read all", ENTRIES, best(3, || read(&file)), bytes);
    let End::Known(end) = decode_end(&file, file.bytes.len() as u64).unwrap() else {
        return;
    };
    let seeks = best(3, || {
        for number in 0..SEEKS {
            let key = &records[mixed(number) as usize % ENTRIES].0;
            let mut cursor = BlockCursor::new(block_of(&file, &end.index, end.has_partitions, key)).unwrap();
            let reached = |stored: &[u8]| stored[..stored.len() - 8] >= key[..];
            assert!(cursor.advance_to(reached).unwrap());
            black_box(cursor.value());
        }
    });
    report("seek", SEEKS, seeks, 0);
    println!("{} bytes an entry", file.bytes.len() / ENTRIES);
}
