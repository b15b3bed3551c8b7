//! Blob columns of each version: bytes, descriptions and damage.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{LargeBinaryBuilder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{new_null_array, Array, ArrayRef, ListArray, RecordBatch, StructArray, UInt64Array};
use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema};
use proptest::prelude::*;

use super::hostile::read_all;
use super::round_trip::{memory, write, write_as};
use super::samples::Numbers;
use crate::schema::{BlobView, Field};
use crate::{FileReader, FileVersion};

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

/// The columns of [`batch`] that a version can hold, in the form in which it takes them.
fn batch_for(version: FileVersion, rows: usize, one_in: u64, seed: u64, sizes: &[(&str, &str)]) -> RecordBatch {
    let all = batch(rows, one_in, seed);
    match version {
        FileVersion::V2_1 => all.project(&[0, 1]).unwrap(),
        FileVersion::V2_2 => RecordBatch::try_from_iter_with_nullable(
            all.columns()
                .iter()
                .zip(["plain", "structs", "lists"])
                .map(|(column, name)| (name, second_kind(column, sizes), true)),
        )
        .map(|batch| {
            let schema = batch.schema();
            let fields = schema.fields().iter().map(|field| match field.name().as_str() {
                "plain" => second_field("plain", sizes),
                _ => field.as_ref().clone(),
            });
            let schema = Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()));
            RecordBatch::try_new(schema, batch.columns().to_vec()).unwrap()
        })
        .unwrap(),
        _ => all,
    }
}

fn second_field(name: &str, sizes: &[(&str, &str)]) -> ArrowField {
    let fields = Fields::from(vec![
        ArrowField::new("data", DataType::LargeBinary, true),
        ArrowField::new("uri", DataType::Utf8, true),
    ]);
    let mut metadata = HashMap::from([("ARROW:extension:name".to_string(), "lance.blob.v2".to_string())]);
    metadata.extend(
        sizes
            .iter()
            .map(|(key, value)| (format!("lance-encoding:blob-{key}"), value.to_string())),
    );
    ArrowField::new(name, DataType::Struct(fields), true).with_metadata(metadata)
}

/// The same array with blobs of the second kind in it.
fn second_kind(array: &ArrayRef, sizes: &[(&str, &str)]) -> ArrayRef {
    match array.data_type() {
        DataType::Struct(_) => {
            let inner = second_kind(array.as_struct().column(0), sizes);
            let fields = Fields::from(vec![second_field("inner", sizes)]);
            Arc::new(StructArray::new(fields, vec![inner], array.nulls().cloned()))
        }
        DataType::List(_) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            let values = second_kind(&values, sizes);
            Arc::new(ListArray::new(
                Arc::new(second_field("item", sizes)),
                offsets,
                values,
                nulls,
            ))
        }
        _ => {
            let DataType::Struct(fields) = second_field("", sizes).data_type().clone() else {
                panic!("expected a struct")
            };
            let uris = new_null_array(&DataType::Utf8, array.len());
            Arc::new(StructArray::new(
                fields,
                vec![array.clone(), uris],
                array.nulls().cloned(),
            ))
        }
    }
}

async fn read(name: &str, view: BlobView, rows: &[Range<u64>]) -> RecordBatch {
    let reader = FileReader::open(memory(name), "a.lance").await.unwrap();
    let fields: Vec<Field> = reader.schema().fields.iter().map(|f| f.with_blob_view(view)).collect();
    let projection = reader.project(&fields, None).unwrap();
    reader.read(&projection, rows).await.unwrap()
}

/// Sizes so small that blobs go everywhere.
const SMALL: [(&str, &str); 3] = [
    ("inline-size-threshold", "8"),
    ("dedicated-size-threshold", "100"),
    ("pack-file-size-threshold", "300"),
];

fn check(version: FileVersion, rows: usize, one_in: u64, seed: u64, page_bytes: u64, ranges: &[Range<u64>]) {
    esker_store::runtime().unwrap().block_on(async {
        let all = batch_for(version, rows, one_in, seed, &SMALL);
        let name = format!("blobs-{version}-{rows}-{one_in}-{seed}-{page_bytes}");
        let cut = rows / 3;
        write_as(
            version,
            &memory(&name),
            "a.lance",
            &[all.slice(0, cut), all.slice(cut, rows - cut)],
            page_bytes,
        )
        .await;
        let places = UInt64Array::from_iter_values(ranges.iter().cloned().flatten());
        let wanted = arrow_select::take::take_record_batch(&batch(rows, one_in, seed), &places).unwrap();
        let found = read(&name, BlobView::Bytes, ranges).await;
        for (found, wanted) in found.columns().iter().zip(wanted.columns()) {
            assert_same_values(found, wanted);
        }
        let described = read(&name, BlobView::Located, ranges).await;
        let blobs = wanted.column(0).as_binary::<i64>();
        let sizes = described.column(0).as_struct().column_by_name("size").unwrap();
        let sizes = sizes.as_primitive::<UInt64Type>();
        for row in 0..wanted.num_rows() {
            assert_eq!(described.column(0).is_null(row), blobs.is_null(row));
            if blobs.is_valid(row) {
                assert_eq!(sizes.value(row), blobs.value(row).len() as u64);
            }
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

/// Equal but for metadata of the fields within.
#[track_caller]
fn assert_same_values(found: &ArrayRef, wanted: &ArrayRef) {
    // A bitmap without a null is as good as none.
    let nulls = |array: &ArrayRef| (0..array.len()).map(|row| array.is_null(row)).collect::<Vec<_>>();
    assert_eq!(nulls(found), nulls(wanted));
    match wanted.data_type() {
        DataType::Struct(_) => assert_same_values(found.as_struct().column(0), wanted.as_struct().column(0)),
        DataType::List(_) => {
            let (found, wanted) = (found.as_list::<i32>(), wanted.as_list::<i32>());
            for row in (0..wanted.len()).filter(|row| wanted.is_valid(*row)) {
                assert_same_values(&found.value(row), &wanted.value(row));
            }
        }
        _ => assert_eq!(found, wanted),
    }
}

fn damage(version: FileVersion) {
    esker_store::runtime().unwrap().block_on(async {
        let name = format!("blob-{version}");
        let store = memory(&name);
        write_as(version, &store, "a.lance", &[batch_for(version, 80, 4, 5, &[])], 256).await;
        let whole = store.get("a.lance").await.unwrap().to_vec();
        assert!(read_all(&name, whole.clone()).await);
        for length in (0..whole.len()).step_by(7) {
            assert!(!read_all(&name, whole[..length].to_vec()).await, "cut to {length}");
        }
        let mut numbers = Numbers(78);
        for _ in 0..1000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + numbers.next() % 3 {
                let at = (numbers.next() % bytes.len() as u64) as usize;
                bytes[at] ^= 1 << (numbers.next() % 8);
            }
            read_all(&name, bytes).await;
        }
    });
}

#[test]
fn test_damaged_blob_files_of_2_0_end_in_rows_or_in_an_error() {
    damage(FileVersion::V2_0);
}

#[test]
fn test_damaged_blob_files_of_2_1_end_in_rows_or_in_an_error() {
    damage(FileVersion::V2_1);
}

#[test]
fn test_damaged_blob_files_of_2_2_end_in_rows_or_in_an_error() {
    damage(FileVersion::V2_2);
}

#[test]
fn test_blobs_of_the_second_kind_lie_where_their_sizes_say() {
    esker_store::runtime().unwrap().block_on(async {
        let store = memory("blob-places");
        let all = batch_for(FileVersion::V2_2, 60, 0, 4, &SMALL).project(&[0]).unwrap();
        write_as(
            FileVersion::V2_2,
            &store,
            "data/a.lance",
            std::slice::from_ref(&all),
            8 << 20,
        )
        .await;
        let found = store.list("data/a/").await.unwrap();
        let blobs = batch(60, 0, 4);
        let sizes: Vec<u64> = blobs
            .column(0)
            .as_binary::<i64>()
            .iter()
            .map(|b| b.unwrap().len() as u64)
            .collect();
        let (alone, shared): (Vec<u64>, Vec<u64>) = found.iter().map(|file| file.size).partition(|size| *size == 200);
        assert_eq!(alone.len(), sizes.iter().filter(|size| **size > 100).count());
        assert_eq!(
            shared.iter().sum::<u64>(),
            sizes.iter().filter(|size| (9..=100).contains(*size)).sum::<u64>()
        );
        assert!(shared.iter().all(|size| *size <= 300));
        assert!(store.head("data/a/10000000000000000000000000000000.blob").await.is_ok());
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn test_any_rows_of_blobs_come_back(
        version in prop::sample::select(vec![FileVersion::V2_0, FileVersion::V2_1, FileVersion::V2_2]),
        rows in 1_usize..200,
        one_in in 0_u64..6,
        seed in any::<u64>(),
        page_bytes in prop::sample::select(vec![1_u64, 50, 500, 8 << 20]),
        mut edges in prop::collection::vec(0_u64..200, 0..10),
    ) {
        edges.iter_mut().for_each(|e| *e = (*e).min(rows as u64));
        edges.sort_unstable();
        let ranges: Vec<Range<u64>> = edges.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
        check(version, rows, one_in, seed, page_bytes, &ranges);
    }
}
