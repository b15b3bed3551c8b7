//! Files of version 0.1: what is written comes back as far as the version keeps it, and damaged bytes end in an error.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};
use esker_store::store::StoreRef;
use proptest::prelude::*;

use super::hostile::read_all;
use super::round_trip::{assert_same, memory, read, wanted};
use super::samples::{self, Numbers};
use crate::schema::Schema;
use crate::{FileError, FileReader, FileVersion, FileWriter, WriteOptions};

async fn write(store: &StoreRef, path: &str, batches: &[RecordBatch], rows_per_group: usize) {
    let schema = Schema::from_arrow(&batches[0].schema()).unwrap();
    let options = WriteOptions {
        version: FileVersion::V0_1,
        rows_per_group,
        allow_null_loss: true,
        ..Default::default()
    };
    let mut writer = FileWriter::create(store, path, &schema, options).await.unwrap();
    for batch in batches {
        writer.write(batch).await.unwrap();
    }
    writer.finish().await.unwrap();
}

/// What a file of version 0.1 keeps of values.
fn kept(array: &ArrayRef) -> ArrayRef {
    let rows = array.len();
    match array.data_type() {
        DataType::Null => array.clone(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
            let lengths = arrow_cast::cast(array, &DataType::LargeBinary).unwrap();
            let lengths = lengths.as_binary::<i64>();
            let valid = (0..rows).map(|row| lengths.is_valid(row) && !lengths.value(row).is_empty());
            nulled(array, NullBuffer::from_iter(valid))
        }
        DataType::Dictionary(_, value) => {
            let values = kept(&arrow_cast::cast(array, value).unwrap());
            arrow_cast::cast(&values, array.data_type()).unwrap()
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().map(kept).collect();
            Arc::new(StructArray::new(fields.clone(), columns, None))
        }
        DataType::List(item) => {
            let lists = array.as_list::<i32>();
            let rows = (0..rows).map(|row| lists.is_valid(row).then(|| lists.value(row)));
            let rows: Vec<ArrayRef> = rows
                .map(|row| row.unwrap_or_else(|| new_empty_array(item.data_type())))
                .collect();
            let offsets = arrow_buffer::OffsetBuffer::from_lengths(rows.iter().map(|row| row.len()));
            Arc::new(ListArray::new(item.clone(), offsets, kept(&joined(&rows, item)), None))
        }
        DataType::LargeList(item) => {
            let lists = array.as_list::<i64>();
            let rows = (0..rows).map(|row| lists.is_valid(row).then(|| lists.value(row)));
            let rows: Vec<ArrayRef> = rows
                .map(|row| row.unwrap_or_else(|| new_empty_array(item.data_type())))
                .collect();
            let offsets = arrow_buffer::OffsetBuffer::from_lengths(rows.iter().map(|row| row.len()));
            Arc::new(LargeListArray::new(
                item.clone(),
                offsets,
                kept(&joined(&rows, item)),
                None,
            ))
        }
        DataType::FixedSizeList(item, size) => {
            let list = array.as_fixed_size_list();
            let nulls = list.nulls().map(|nulls| nulls.expand(*size as usize));
            let items = crate::v0_1::encode::with_nulls(list.values(), nulls.as_ref()).unwrap();
            Arc::new(FixedSizeListArray::new(item.clone(), *size, kept(&items), None))
        }
        _ => {
            let zero = array.to_data().into_builder().nulls(None).build().unwrap();
            let (zero, data) = (make_array(zero), array.to_data());
            let mut rows: Vec<ArrayRef> = Vec::new();
            for row in 0..data.len() {
                let bytes = vec![0_u8; 32];
                let empty = zero.to_data().into_builder().len(1).offset(0);
                let empty = make_array(empty.buffers(vec![bytes.into()]).build().unwrap());
                rows.push(if data.is_valid(row) { zero.slice(row, 1) } else { empty });
            }
            joined(&rows, &Field::new("item", array.data_type().clone(), true))
        }
    }
}

fn joined(parts: &[ArrayRef], item: &Field) -> ArrayRef {
    let parts: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
    match parts.is_empty() {
        true => new_empty_array(item.data_type()),
        false => arrow_select::concat::concat(&parts).unwrap(),
    }
}

fn nulled(array: &ArrayRef, nulls: NullBuffer) -> ArrayRef {
    make_array(array.to_data().into_builder().nulls(Some(nulls)).build().unwrap())
}

fn check(rows: usize, one_in: u64, seed: u64, cuts: &[usize], group: usize, ranges: &[Range<u64>]) {
    esker_store::runtime().unwrap().block_on(async {
        let all = samples::batch(rows, one_in, seed);
        let mut batches = Vec::new();
        let mut start = 0;
        for cut in cuts.iter().map(|c| c % (rows + 1)).chain([rows]) {
            if cut > start {
                batches.push(all.slice(start, cut - start));
                start = cut;
            }
        }
        let store = memory(&format!("groups-{seed}-{rows}-{group}"));
        write(&store, "data/a.lance", &batches, group).await;
        let columns = all.columns().iter().map(kept).collect();
        let expected = RecordBatch::try_new(all.schema(), columns).unwrap();
        let found = read(&store, "data/a.lance", ranges).await;
        assert_same(
            &plain_dictionaries(&found),
            &plain_dictionaries(&wanted(&expected, ranges)),
        );
    });
}

/// Dictionaries as their values: keys are of nobody's concern, and a null may be one of the values.
fn plain_dictionaries(batch: &RecordBatch) -> RecordBatch {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
        let column = match field.data_type() {
            DataType::Dictionary(_, value) => arrow_cast::cast(column, value).unwrap(),
            _ => column.clone(),
        };
        (field.name().clone(), column)
    });
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn test_all_rows_of_every_type_come_back_as_far_as_they_are_kept() {
    check(1000, 0, 1, &[], 1024, &[0..1000]);
    check(1000, 3, 2, &[10, 500], 100, &[0..1000]);
    check(500, 1, 3, &[], 64, &[0..500]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn test_any_rows_of_any_group_come_back(
        rows in 1_usize..300,
        one_in in 0_u64..6,
        seed in any::<u64>(),
        mut cuts in prop::collection::vec(0_usize..300, 0..4),
        group in prop::sample::select(vec![1_usize, 7, 8, 100, 1024]),
        mut edges in prop::collection::vec(0_u64..300, 0..10),
    ) {
        cuts.sort_unstable();
        edges.iter_mut().for_each(|e| *e = (*e).min(rows as u64));
        edges.sort_unstable();
        let ranges: Vec<Range<u64>> = edges.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
        check(rows, one_in, seed, &cuts, group, &ranges);
    }
}

async fn small_file(test: &str) -> Vec<u8> {
    let store = memory(&format!("groups-source-{test}"));
    write(&store, "a.lance", &[samples::batch(70, 3, 9)], 16).await;
    store.get("a.lance").await.unwrap().to_vec()
}

#[test]
fn test_a_file_of_groups_cut_anywhere_is_refused() {
    esker_store::runtime().unwrap().block_on(async {
        let whole = small_file("cut").await;
        assert!(read_all("groups-cut", whole.clone()).await);
        for length in (0..whole.len()).rev() {
            assert!(
                !read_all("groups-cut", whole[..length].to_vec()).await,
                "cut to {length} of {} bytes",
                whole.len()
            );
        }
    });
}

#[test]
fn test_flipped_bits_of_groups_end_in_rows_or_in_an_error() {
    esker_store::runtime().unwrap().block_on(async {
        let whole = small_file("flip").await;
        let mut numbers = Numbers(78);
        let table = whole.len() as u64 / 2;
        for round in 0..1200 {
            let mut bytes = whole.clone();
            for _ in 0..1 + numbers.next() % 3 {
                // The second half holds page table, statistics and metadata: most of what can mislead.
                let from = if round % 3 == 0 { 0 } else { table };
                let at = (from + numbers.next() % (bytes.len() as u64 - from)) as usize;
                bytes[at] ^= 1 << (numbers.next() % 8);
            }
            read_all("groups-flip", bytes.clone()).await;
            read_statistics("groups-flip", bytes).await;
        }
    });
}

async fn read_statistics(test: &str, bytes: Vec<u8>) {
    let store = memory(&format!("groups-statistics-{test}"));
    store.put("b.lance", bytes.into()).await.unwrap();
    let Ok(reader) = FileReader::open(store, "b.lance").await else {
        return;
    };
    let _ = reader.statistics().await;
    let Ok(projection) = reader.project(&reader.schema().fields, None) else {
        return;
    };
    let _ = reader.group_bounds(&projection).await;
}

#[test]
fn test_a_damaged_offset_is_named_with_file_column_and_group() {
    esker_store::runtime().unwrap().block_on(async {
        let store = memory("groups-named");
        let words = StringArray::from_iter_values((0..20).map(|i| format!("word {i}")));
        let batch = RecordBatch::try_from_iter([("words", Arc::new(words) as ArrayRef)]).unwrap();
        write(&store, "a.lance", &[batch], 10).await;
        let mut bytes = store.get("a.lance").await.unwrap().to_vec();
        // The second group's bytes end in front of its offsets: 10 words of 7 letters behind the first group.
        let first = 10 * 6 + 11 * 8;
        let offsets = first + 10 * 7;
        bytes[offsets + 3 * 8] ^= 0x40;
        store.put("a.lance", bytes.into()).await.unwrap();
        let reader = FileReader::open(store, "a.lance").await.unwrap();
        let projection = reader.project(&reader.schema().fields, None).unwrap();
        let error = reader.read(&projection, &[0..20]).await.unwrap_err();
        assert!(matches!(error, FileError::Corrupt { .. }));
        let message = error.to_string();
        assert!(
            message.contains("a.lance: column 'words', page of group 1"),
            "{message}"
        );
        reader.read(&projection, &[0..10]).await.unwrap();
    });
}

#[test]
fn test_statistics_are_what_the_format_lays_down() {
    esker_store::runtime().unwrap().block_on(async {
        let store = memory("groups-statistics");
        let numbers = Int64Array::from(vec![
            Some(3),
            None,
            Some(-1),
            None,
            None,
            None,
            Some(7),
            Some(9),
            Some(8),
        ]);
        let floats = Float64Array::from(vec![
            0.0,
            f64::NAN,
            -0.0,
            f64::NAN,
            f64::NAN,
            f64::NAN,
            1.0,
            f64::INFINITY,
            2.0,
        ]);
        let long = "z".repeat(100);
        let words = StringArray::from(vec![
            Some("b"),
            None,
            Some("a"),
            None,
            None,
            None,
            Some(&long),
            Some(""),
            Some("y"),
        ]);
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("numbers", Arc::new(numbers) as ArrayRef, true),
            ("floats", Arc::new(floats) as ArrayRef, true),
            ("words", Arc::new(words) as ArrayRef, true),
        ])
        .unwrap();
        write(&store, "a.lance", &[batch], 3).await;
        let reader = FileReader::open(store, "a.lance").await.unwrap();
        let all = reader.statistics().await.unwrap().unwrap();
        let part = |field: &str, part: &str| all[field].as_struct().column_by_name(part).unwrap().clone();
        assert_eq!(part("0", "null_count").as_primitive::<Int64Type>().values(), &[1, 3, 0]);
        assert_eq!(
            part("0", "min_value").as_primitive::<Int64Type>().values(),
            &[-1, i64::MIN, 7]
        );
        assert_eq!(
            part("0", "max_value").as_primitive::<Int64Type>().values(),
            &[3, i64::MAX, 9]
        );
        let (min, max) = (part("1", "min_value"), part("1", "max_value"));
        let bits = |array: &ArrayRef| {
            array
                .as_primitive::<Float64Type>()
                .values()
                .iter()
                .map(|v| v.to_bits())
                .collect::<Vec<_>>()
        };
        assert_eq!(bits(&min), [-0.0, f64::NEG_INFINITY, 1.0].map(f64::to_bits));
        assert_eq!(bits(&max), [0.0, f64::INFINITY, f64::INFINITY].map(f64::to_bits));
        let text = |array: ArrayRef| {
            array
                .as_string::<i32>()
                .iter()
                .map(|v| v.map(str::to_owned))
                .collect::<Vec<_>>()
        };
        let cut = "z".repeat(63) + "{";
        assert_eq!(text(part("2", "min_value")), [Some("a".into()), None, None]);
        assert_eq!(text(part("2", "max_value")), [Some("b".into()), None, Some(cut)]);

        // What holds of the values as they are read: nulls became zeros, "" became null.
        let projection = reader.project(&reader.schema().fields, None).unwrap();
        let bounds = reader.group_bounds(&projection).await.unwrap();
        let numbers = &bounds[&vec!["numbers".to_owned()]];
        assert_eq!(numbers.null_count, [Some(0), Some(0), Some(0)]);
        assert_eq!(
            numbers.min.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(),
            [None, None, Some(7)]
        );
        assert_eq!(bounds[&vec!["words".to_owned()]].null_count, [Some(1), Some(3), None]);
    });
}
