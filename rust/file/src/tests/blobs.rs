//! Blob columns of version 2.0: bytes, descriptions and damage.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{LargeBinaryBuilder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray, UInt64Array};
use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema};
use proptest::prelude::*;

use super::hostile::read_all;
use super::round_trip::{memory, write};
use super::samples::Numbers;
use crate::schema::{BlobView, Field};
use crate::FileReader;

fn blob_field(name: &str) -> ArrowField {
    ArrowField::new(name, DataType::LargeBinary, true)
        .with_metadata(HashMap::from([("lance-encoding:blob".to_string(), "true".to_string())]))
}

fn append(n: &mut Numbers, one_in: u64, blobs: &mut LargeBinaryBuilder) {
    if one_in > 0 && n.next().is_multiple_of(one_in) {
        blobs.append_null();
    } else {
        let size = [0, 1, 10, 64, 200][(n.next() % 5) as usize];
        blobs.append_value((0..size).map(|_| n.next() as u8).collect::<Vec<_>>());
    }
}

/// A blob column, one within a struct, one within lists.
fn batch(rows: usize, one_in: u64, seed: u64) -> RecordBatch {
    let n = &mut Numbers(seed);
    let mut plain = LargeBinaryBuilder::new();
    let mut below = LargeBinaryBuilder::new();
    let mut lists = ListBuilder::new(LargeBinaryBuilder::new()).with_field(blob_field("item"));
    for _ in 0..rows {
        append(n, one_in, &mut plain);
        append(n, one_in, &mut below);
        for _ in 0..n.next() % 3 {
            append(n, one_in, lists.values());
        }
        lists.append(one_in == 0 || !n.next().is_multiple_of(one_in));
    }
    let fields = Fields::from(vec![blob_field("inner")]);
    let structs = StructArray::new(fields.clone(), vec![Arc::new(below.finish()) as ArrayRef], None);
    let lists = lists.finish();
    let schema = ArrowSchema::new(vec![
        blob_field("plain"),
        ArrowField::new("structs", DataType::Struct(fields), true),
        ArrowField::new("lists", lists.data_type().clone(), true),
    ]);
    let columns: Vec<ArrayRef> = vec![Arc::new(plain.finish()), Arc::new(structs), Arc::new(lists)];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

async fn read(name: &str, view: BlobView, rows: &[Range<u64>]) -> RecordBatch {
    let reader = FileReader::open(memory(name), "a.lance").await.unwrap();
    let fields: Vec<Field> = reader.schema().fields.iter().map(|f| f.with_blob_view(view)).collect();
    let projection = reader.project(&fields, None).unwrap();
    reader.read(&projection, rows).await.unwrap()
}

fn check(rows: usize, one_in: u64, seed: u64, page_bytes: u64, ranges: &[Range<u64>]) {
    esker_store::runtime().unwrap().block_on(async {
        let all = batch(rows, one_in, seed);
        let name = format!("blobs-{rows}-{one_in}-{seed}-{page_bytes}");
        let cut = rows / 3;
        write(
            &memory(&name),
            "a.lance",
            &[all.slice(0, cut), all.slice(cut, rows - cut)],
            page_bytes,
        )
        .await;
        let places = UInt64Array::from_iter_values(ranges.iter().cloned().flatten());
        let wanted = arrow_select::take::take_record_batch(&all, &places).unwrap();
        let found = read(&name, BlobView::Bytes, ranges).await;
        for (found, wanted) in found.columns().iter().zip(wanted.columns()) {
            assert_eq!(found, wanted);
        }
        let described = read(&name, BlobView::Located, ranges).await;
        let blobs = wanted.column(0).as_binary::<i64>();
        let sizes = described.column(0).as_struct().column(1).as_primitive::<UInt64Type>();
        for row in 0..wanted.num_rows() {
            assert_eq!(described.column(0).is_null(row), blobs.is_null(row));
            assert_eq!(sizes.value(row), blobs.value(row).len() as u64);
        }
    });
}

#[test]
fn test_a_null_blob_is_described_by_position_1_and_size_0() {
    esker_store::runtime().unwrap().block_on(async {
        write(&memory("blob-null"), "a.lance", &[batch(20, 1, 1)], 8 << 20).await;
        let found = read("blob-null", BlobView::Descriptions, &[0..20]).await;
        let descriptions = found.column(0).as_struct();
        assert_eq!(descriptions.null_count(), 0);
        let numbers = |i: usize| descriptions.column(i).as_primitive::<UInt64Type>().values().to_vec();
        assert_eq!((numbers(0), numbers(1)), (vec![1; 20], vec![0; 20]));
    });
}

#[test]
fn test_payloads_start_at_multiples_of_64() {
    esker_store::runtime().unwrap().block_on(async {
        write(&memory("blob-aligned"), "a.lance", &[batch(60, 0, 4)], 8 << 20).await;
        let found = read("blob-aligned", BlobView::Descriptions, &[0..60]).await;
        let positions = found.column(0).as_struct().column(0).as_primitive::<UInt64Type>();
        assert!(positions.values().iter().all(|position| position % 64 == 0));
        assert!(positions.values().iter().any(|position| *position > 0));
    });
}

#[test]
fn test_blobs_side_by_side_are_read_in_one_request() {
    esker_store::runtime().unwrap().block_on(async {
        let mut blobs = LargeBinaryBuilder::new();
        (0..50_u8).for_each(|byte| blobs.append_value([byte; 128]));
        let schema = Arc::new(ArrowSchema::new(vec![blob_field("b")]));
        let all = RecordBatch::try_new(schema, vec![Arc::new(blobs.finish())]).unwrap();
        let store = memory("blob-run");
        write(&store, "a.lance", std::slice::from_ref(&all), 8 << 20).await;
        let reader = FileReader::open(store.clone(), "a.lance").await.unwrap();
        let projection = reader.project(&reader.schema().fields, None).unwrap();
        store.stats().take();
        let found = reader.read(&projection, &[0..50]).await.unwrap();
        assert_eq!(found.column(0), all.column(0));
        // The descriptions, and all the bytes.
        assert_eq!(store.stats().take().read_requests, 2);
    });
}

#[test]
fn test_damaged_blob_files_end_in_rows_or_in_an_error() {
    esker_store::runtime().unwrap().block_on(async {
        let store = memory("blob-hostile");
        write(&store, "a.lance", &[batch(80, 4, 5)], 256).await;
        let whole = store.get("a.lance").await.unwrap().to_vec();
        assert!(read_all("blob", whole.clone()).await);
        for length in (0..whole.len()).step_by(7) {
            assert!(!read_all("blob", whole[..length].to_vec()).await, "cut to {length}");
        }
        let mut numbers = Numbers(78);
        for _ in 0..2000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + numbers.next() % 3 {
                let at = (numbers.next() % bytes.len() as u64) as usize;
                bytes[at] ^= 1 << (numbers.next() % 8);
            }
            read_all("blob", bytes).await;
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn test_any_rows_of_blobs_come_back(
        rows in 1_usize..200,
        one_in in 0_u64..6,
        seed in any::<u64>(),
        page_bytes in prop::sample::select(vec![1_u64, 50, 500, 8 << 20]),
        mut edges in prop::collection::vec(0_u64..200, 0..10),
    ) {
        edges.iter_mut().for_each(|e| *e = (*e).min(rows as u64));
        edges.sort_unstable();
        let ranges: Vec<Range<u64>> = edges.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
        check(rows, one_in, seed, page_bytes, &ranges);
    }
}
