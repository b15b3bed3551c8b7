//! What is written comes back: every type, page size, batch boundary and set of rows.

use std::collections::HashMap;
use std::ops::Range;

use arrow_array::{RecordBatch, UInt64Array};
use esker_store::store::StoreRef;
use proptest::prelude::*;

use super::samples;
use crate::schema::Schema;
use crate::{FileReader, FileVersion, FileWriter, WriteOptions};

pub(super) fn memory(name: &str) -> StoreRef {
    esker_store::open(&format!("memory://{name}"), &HashMap::new(), true).unwrap()
}

pub(super) async fn write(store: &StoreRef, path: &str, batches: &[RecordBatch], page_bytes: u64) {
    write_as(FileVersion::V2_0, store, path, batches, page_bytes).await;
}

pub(super) async fn write_as(
    version: FileVersion,
    store: &StoreRef,
    path: &str,
    batches: &[RecordBatch],
    page_bytes: u64,
) {
    let schema = Schema::from_arrow(&batches[0].schema()).unwrap();
    let options = WriteOptions {
        version,
        page_bytes,
        ..Default::default()
    };
    let mut writer = FileWriter::create(store, path, &schema, options).await.unwrap();
    for batch in batches {
        writer.write(batch).await.unwrap();
    }
    writer.finish().await.unwrap();
}

pub(super) async fn read(store: &StoreRef, path: &str, rows: &[Range<u64>]) -> RecordBatch {
    let reader = FileReader::open(store.clone(), path).await.unwrap();
    let projection = reader.project(&reader.schema().fields, None).unwrap();
    reader.read(&projection, rows).await.unwrap()
}

pub(super) fn wanted(all: &RecordBatch, rows: &[Range<u64>]) -> RecordBatch {
    let places = UInt64Array::from_iter_values(rows.iter().cloned().flatten());
    arrow_select::take::take_record_batch(all, &places).unwrap()
}

#[track_caller]
pub(super) fn assert_same(found: &RecordBatch, expected: &RecordBatch) {
    for (column, field) in expected.schema().fields().iter().enumerate() {
        assert_eq!(found.column(column), expected.column(column), "column {}", field.name());
    }
}

fn check(rows: usize, one_in: u64, seed: u64, cuts: &[usize], page_bytes: u64, ranges: &[Range<u64>]) {
    let all = samples::batch(rows, one_in, seed);
    check_batch(FileVersion::V2_0, &all, seed, cuts, page_bytes, ranges);
}

/// Writes the rows in batches that end at `cuts`, and reads `ranges` of them.
pub(super) fn check_batch(
    version: FileVersion,
    all: &RecordBatch,
    seed: u64,
    cuts: &[usize],
    page_bytes: u64,
    ranges: &[Range<u64>],
) {
    let rows = all.num_rows();
    esker_store::runtime().unwrap().block_on(async {
        let mut batches = Vec::new();
        let mut start = 0;
        for cut in cuts.iter().map(|c| c % (rows + 1)).chain([rows]) {
            if cut > start {
                batches.push(all.slice(start, cut - start));
                start = cut;
            }
        }
        let store = memory(&format!("round-trip-{version}-{seed}-{rows}-{page_bytes}"));
        write_as(version, &store, "data/a.lance", &batches, page_bytes).await;
        assert_same(&read(&store, "data/a.lance", ranges).await, &wanted(all, ranges));
    });
}

#[test]
fn test_all_rows_of_every_type_come_back() {
    check(1000, 0, 1, &[], 8 << 20, &[0..1000]);
    check(1000, 3, 2, &[10, 500], 8 << 20, &[0..1000]);
    check(1000, 1, 3, &[], 8 << 20, &[0..1000]);
}

#[test]
fn test_rows_around_page_edges_come_back() {
    check(300, 4, 4, &[7, 100, 101], 64, &[0..300]);
    check(300, 4, 5, &[7, 100, 101], 64, &[0..1, 7..9, 15..17, 99..102, 299..300]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn test_any_rows_of_any_file_come_back(
        rows in 1_usize..400,
        one_in in 0_u64..6,
        seed in any::<u64>(),
        mut cuts in prop::collection::vec(0_usize..400, 0..4),
        page_bytes in prop::sample::select(vec![1_u64, 50, 500, 5000, 8 << 20]),
        mut edges in prop::collection::vec(0_u64..400, 0..10),
    ) {
        cuts.sort_unstable();
        edges.iter_mut().for_each(|e| *e = (*e).min(rows as u64));
        edges.sort_unstable();
        let ranges: Vec<Range<u64>> = edges.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
        check(rows, one_in, seed, &cuts, page_bytes, &ranges);
    }
}
