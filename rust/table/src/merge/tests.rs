//! Keys, filters and rows on disk, against plain models.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use proptest::prelude::*;

use super::filter_keys::add_keys;
use super::key_filter::KeyFilter;
use super::partitions::SourceParts;
use esker_merge::KeyEncoder;
use esker_merge::KeyTable;
use esker_merge::MergeSource;

fn filter(bloom: bool, keys: impl IntoIterator<Item = i64>) -> KeyFilter {
    let mut filter = KeyFilter::new(vec![3], bloom);
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
    add_keys(&mut filter, &[column]).unwrap();
    filter
}

/// The set bits of the filter over one int64 key, as pylance 14 wrote them: (byte, bits).
const OF_SEVEN: [(usize, u8); 8] = [
    (1056, 16),
    (1060, 128),
    (1067, 8),
    (1069, 2),
    (1072, 2),
    (1078, 64),
    (1081, 2),
    (1085, 16),
];

#[test]
fn test_the_filter_of_one_key_is_what_pylance_wrote() {
    let message = filter(true, [7]).encode();
    let bitmap = message
        .windows(2048)
        .position(|window| OF_SEVEN.iter().all(|(byte, bits)| window[*byte] == *bits));
    assert!(bitmap.is_some());
    let bits: u32 = message
        .iter()
        .skip(bitmap.unwrap())
        .take(32768)
        .map(|byte| byte.count_ones())
        .sum();
    assert_eq!(bits, 8);
}

#[test]
fn test_a_filter_of_many_keys_becomes_a_bloom_filter() {
    let few = filter(false, 0..4096);
    assert!(few.encode().len() > 4096 * 8);
    let many = filter(false, 0..4097);
    assert!(many.encode().len() < 33_000);
    assert!(few.overlaps(&many) && many.overlaps(&few));
    assert!(many.overlaps(&filter(false, [4096])));
}

#[test]
fn test_filters_of_other_columns_or_sizes_overlap_unless_one_is_empty() {
    let mut other = KeyFilter::new(vec![4], false);
    assert!(!other.overlaps(&filter(false, [1])));
    other.insert(b"x");
    assert!(other.overlaps(&filter(false, [1])));
    let small = KeyFilter::decode(&Bytes::from_static(
        b"\x0a\x01\x03\x1a\x22\x0a\x20\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    ));
    assert!(small.unwrap().overlaps(&filter(true, [1])));
}

#[test]
fn test_null_keys_are_in_no_filter_and_in_no_table() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(1)]));
    let name: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    let mut filter = KeyFilter::new(vec![0, 1], false);
    add_keys(&mut filter, &[column.clone(), name.clone()]).unwrap();
    assert!(filter.is_empty());
    let encoder = KeyEncoder::new([("a", DataType::Int64), ("b", DataType::Utf8)]).unwrap();
    let keys = encoder.encode(&[column, name]).unwrap();
    assert_eq!((keys.get(0), keys.get(1), keys.get(2)), (None, None, None));
}

#[test]
fn test_types_that_cannot_be_compared_are_refused_by_name() {
    let entries = Field::new_struct(
        "entries",
        vec![
            Field::new("k", DataType::Utf8, false),
            Field::new("v", DataType::Utf8, true),
        ],
        false,
    );
    let error = KeyEncoder::new([("m", DataType::Map(Arc::new(entries), false))]);
    // Whether maps are comparable is for the Arrow release to say; a refusal names the column.
    if let Err(error) = error {
        assert!(error.to_string().contains("column 'm'"), "{error}");
    }
}

fn batch(rows: &[(Option<i64>, String)]) -> RecordBatch {
    let keys: ArrayRef = Arc::new(rows.iter().map(|(key, _)| *key).collect::<Int64Array>());
    let texts: ArrayRef = Arc::new(rows.iter().map(|(_, text)| Some(text)).collect::<StringArray>());
    let fields = vec![
        Field::new("k", DataType::Int64, true),
        Field::new("t", DataType::Utf8, true),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![keys, texts]).unwrap()
}

fn rows_of(batch: &RecordBatch) -> Vec<(Option<i64>, String)> {
    let keys = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
    let texts = batch.column(1).as_any().downcast_ref::<StringArray>().unwrap();
    keys.iter()
        .zip(texts.iter().map(|text| text.unwrap().to_string()))
        .collect()
}

fn batches() -> impl Strategy<Value = Vec<Vec<(Option<i64>, String)>>> {
    let row = (proptest::option::of(0i64..30), "[a-z]{0,12}");
    proptest::collection::vec(proptest::collection::vec(row, 0..20), 1..6)
}

proptest! {
    #[test]
    fn test_filters_find_every_common_key(
        ours in proptest::collection::btree_set(any::<i64>(), 0..300),
        theirs in proptest::collection::btree_set(any::<i64>(), 0..300),
        common in proptest::option::of(any::<i64>()),
        blooms in any::<[bool; 2]>(),
    ) {
        let (mut ours, mut theirs) = (ours, theirs);
        ours.extend(common);
        theirs.extend(common);
        let shared = !ours.is_disjoint(&theirs);
        let (a, b) = (filter(blooms[0], ours), filter(blooms[1], theirs));
        // Of a few hundred keys hardly ever by mistake, of exact ones never.
        prop_assert!(a.overlaps(&b) || !shared);
        prop_assert!(blooms != [false, false] || a.overlaps(&b) == shared);
        prop_assert_eq!(KeyFilter::decode(&a.encode()).unwrap(), a);
    }

    #[test]
    fn test_any_bytes_are_a_filter_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(filter) = KeyFilter::decode(&Bytes::from(bytes)) {
            filter.overlaps(&filter.clone());
        }
    }

    #[test]
    fn test_a_table_of_keys_finds_the_rows_of_each(batches in batches(), asked in 0i64..40) {
        let encoder = KeyEncoder::new([("k", DataType::Int64)]).unwrap();
        let mut table = KeyTable::default();
        let mut model: HashMap<i64, Vec<u32>> = HashMap::new();
        for (row, (key, _)) in batches.iter().flatten().enumerate() {
            if let Some(key) = key {
                model.entry(*key).or_default().push(row as u32);
            }
        }
        for rows in &batches {
            table.push(encoder.encode(&[batch(rows).column(0).clone()]).unwrap()).unwrap();
        }
        table.index();
        prop_assert_eq!(table.len() as usize, batches.iter().flatten().count());
        let keys = encoder.encode(&[Arc::new(Int64Array::from(vec![asked]))]).unwrap();
        let found: Vec<u32> = table.rows_of(keys.get(0).unwrap()).collect();
        prop_assert_eq!(found, model.get(&asked).cloned().unwrap_or_default());
    }

    #[test]
    fn test_a_source_reads_as_it_was_written_in_memory_and_on_disk(batches in batches(), limit in 0u64..2000, part in 1u64..3000) {
        let schema = batch(&[]).schema();
        let stream = batches.iter().map(|rows| Ok(batch(rows))).collect::<Vec<_>>();
        let source = MergeSource::read(Box::new(RecordBatchIterator::new(stream, schema)), limit, &esker_merge::DiskQuota::default()).unwrap();
        let expected: Vec<_> = batches.concat();
        for _ in 0..2 {
            let found: Vec<_> = source.batches().flat_map(|batch| rows_of(&batch.unwrap())).collect();
            prop_assert_eq!(&found, &expected);
        }
        prop_assert_eq!(source.num_rows() as usize, expected.len());
        let encoder = KeyEncoder::new([("k", DataType::Int64)]).unwrap();
        let parts = SourceParts::new(&Arc::new(source), &encoder, &[0], &[], part, || Ok(())).unwrap();
        let mut all = Vec::new();
        let mut seen: HashMap<i64, usize> = HashMap::new();
        for part in 0..parts.len() {
            for row in parts.batches(part).flat_map(|batch| rows_of(&batch.unwrap())) {
                if let Some(key) = row.0 {
                    // Rows of one key are in one part.
                    prop_assert_eq!(*seen.entry(key).or_insert(part), part);
                }
                all.push(row);
            }
        }
        let sorted = |rows: Vec<(Option<i64>, String)>| rows.into_iter().collect::<Vec<_>>().into_iter().map(|row| format!("{row:?}")).collect::<BTreeSet<_>>();
        prop_assert_eq!(all.len(), expected.len());
        prop_assert_eq!(sorted(all), sorted(expected));
    }
}
