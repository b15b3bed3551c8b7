//! Reads that a value costs in 2.1 and 2.2, once a page's state is known: one for fixed width, two for variable width, at any nesting.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::Float32Type;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Int64Array, LargeBinaryArray, ListArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field;
use esker_store::store::StoreRef;

use super::round_trip::memory;
use super::samples::Numbers;
use crate::schema::Schema;
use crate::{FileReader, FileVersion, FileWriter, WriteOptions};

const ROWS: usize = 60_000;

async fn written(name: &str, version: FileVersion, array: ArrayRef) -> (StoreRef, FileReader, RecordBatch) {
    let batch = RecordBatch::try_from_iter_with_nullable([("c", array, true)]).unwrap();
    let store = memory(&format!("read-counts-{name}-{version}"));
    let schema = Schema::from_arrow(&batch.schema()).unwrap();
    let options = WriteOptions {
        version,
        ..Default::default()
    };
    let mut writer = FileWriter::create(&store, "a.lance", &schema, options).await.unwrap();
    writer.write(&batch).await.unwrap();
    writer.finish().await.unwrap();
    let reader = FileReader::open(store.clone(), "a.lance").await.unwrap();
    (store, reader, batch)
}

async fn read(reader: &FileReader, from: u64, to: u64) -> RecordBatch {
    let projection = reader.project(&reader.schema().fields, None).unwrap();
    let rows = from..to;
    reader.read(&projection, std::slice::from_ref(&rows)).await.unwrap()
}

/// Values from pages whose state is known cost at most `most` reads, and bring few bytes.
fn check(name: &str, array: impl Fn() -> ArrayRef, most: u64) {
    esker_store::runtime().unwrap().block_on(async {
        for version in [FileVersion::V2_1, FileVersion::V2_2] {
            let (store, reader, batch) = written(name, version, array()).await;
            let rows = batch.num_rows();
            // One value of each page: now their states are known.
            for page in reader.container().unwrap().column(0).unwrap().pages.iter() {
                read(&reader, page.first_value, page.first_value + 1).await;
            }
            let mut numbers = Numbers(5);
            for _ in 0..20 {
                let row = numbers.next() % rows as u64;
                store.stats().take();
                let found = read(&reader, row, row + 1).await;
                let stats = store.stats().take();
                assert!(stats.read_requests <= most, "{name} in {version}: {stats:?}");
                assert!(stats.bytes_read < 100_000, "{name} in {version}: {stats:?}");
                assert_eq!(
                    found.column(0),
                    &batch.column(0).slice(row as usize, 1),
                    "{name} row {row}"
                );
            }
        }
    });
}

fn ints() -> Int64Array {
    let mut numbers = Numbers(1);
    (0..ROWS).map(|i| (i % 7 > 0).then(|| numbers.next() as i64)).collect()
}

fn words() -> StringArray {
    let mut numbers = Numbers(2);
    (0..ROWS)
        .map(|i| (i % 5 > 0).then(|| format!("{:x}", numbers.next())))
        .collect()
}

fn in_lists(items: ArrayRef) -> ArrayRef {
    let lengths = (0..items.len() / 3).map(|_| 3);
    let item = Arc::new(Field::new("item", items.data_type().clone(), true));
    let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
    Arc::new(ListArray::new(item, offsets, items.slice(0, items.len() / 3 * 3), None))
}

fn in_structs(field: ArrayRef) -> ArrayRef {
    let name = Arc::new(Field::new("x", field.data_type().clone(), true));
    Arc::new(StructArray::new(vec![name].into(), vec![field], None))
}

#[test]
fn test_a_value_of_fixed_width_costs_one_read() {
    check("int", || Arc::new(ints()), 1);
    check("list-int", || in_lists(Arc::new(ints())), 1);
    check(
        "list-struct-list-int",
        || in_lists(in_structs(in_lists(Arc::new(ints())))),
        1,
    );
    let vectors = || {
        let rows = (0..3000).map(|i| (i % 9 > 0).then(|| vec![Some(i as f32); 256]));
        Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 256)) as ArrayRef
    };
    check("vector", vectors, 1);
    check("struct-vector", || in_structs(vectors()), 1);
}

#[test]
fn test_a_value_of_variable_width_costs_at_most_two_reads() {
    check("string", || Arc::new(words()), 1);
    check("list-string", || in_lists(Arc::new(words())), 1);
    let lists = || {
        let mut lists = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
        for row in 0..ROWS / 10 {
            for _ in 0..row % 4 {
                for word in 0..row % 3 {
                    lists.values().values().append_value(format!("{row}-{word}"));
                }
                lists.values().append(row % 11 > 0);
            }
            lists.append(true);
        }
        Arc::new(lists.finish()) as ArrayRef
    };
    check("list-list-string", lists, 1);
    let large = || {
        let mut numbers = Numbers(3);
        let value = (0..6000).map(|i| (i % 6 > 0).then(|| vec![numbers.next() as u8; 2000]));
        Arc::new(LargeBinaryArray::from_iter(value)) as ArrayRef
    };
    check("large", large, 2);
    check("list-large", || in_lists(large()), 2);
}

#[test]
fn test_a_page_that_is_wanted_whole_is_one_read() {
    esker_store::runtime().unwrap().block_on(async {
        for (name, array) in [
            ("ints", Arc::new(ints()) as ArrayRef),
            ("words", Arc::new(words())),
            ("lists", in_lists(Arc::new(words()))),
        ] {
            let (store, reader, batch) = written(&format!("whole-{name}"), FileVersion::V2_1, array).await;
            let pages = reader.container().unwrap().column(0).unwrap().pages.len() as u64;
            store.stats().take();
            let found = read(&reader, 0, batch.num_rows() as u64).await;
            let stats = store.stats().take();
            assert!(stats.read_requests <= pages, "{name}: {stats:?} for {pages} pages");
            assert_eq!(found.column(0), batch.column(0), "{name}");
        }
    });
}
