//! Joins and partitions against plain models.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{DataType, Field, Schema};
use proptest::prelude::*;

use crate::{DiskQuota, KeyJoin, Matches, MergeSource, RowPartitions};

fn batch(keys: &[Option<i64>]) -> RecordBatch {
    let schema = Schema::new(vec![Field::new("k", DataType::Int64, true)]);
    let column: ArrayRef = Arc::new(Int64Array::from(keys.to_vec()));
    RecordBatch::try_new(Arc::new(schema), vec![column]).unwrap()
}

fn keys_of(batches: &[RecordBatch]) -> Vec<Option<i64>> {
    let columns = batches
        .iter()
        .map(|batch| batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap());
    columns.flat_map(|column| column.iter().collect::<Vec<_>>()).collect()
}

fn keys() -> impl Strategy<Value = Vec<Option<i64>>> {
    proptest::collection::vec(proptest::option::of(0i64..30), 0..60)
}

proptest! {
    #[test]
    fn test_a_join_finds_every_pair_and_no_other(source in keys(), target in keys(), cut in 1usize..20) {
        let parts = source.chunks(cut).map(|part| Ok(batch(part)));
        let join = KeyJoin::new(&batch(&[]).schema(), parts).unwrap();
        let columns = batch(&target).columns().to_vec();
        let found = join.find(&columns, 0, usize::MAX).unwrap();
        prop_assert_eq!(found.next, target.len());
        // Piece by piece it finds the same.
        let mut pieces = Matches::default();
        while pieces.next < target.len() {
            let piece = join.find(&columns, pieces.next, cut).unwrap();
            prop_assert!(piece.next > pieces.next);
            pieces.next = piece.next;
            pieces.source.extend(piece.source);
            pieces.target.extend(piece.target);
        }
        prop_assert_eq!(&pieces, &found);
        let mut expected = Vec::new();
        for (row, key) in target.iter().enumerate() {
            let same = source.iter().enumerate().filter(|(_, other)| key.is_some() && *other == key);
            expected.extend(same.map(|(other, _)| (other as u32, row as u32)));
        }
        let found: Vec<_> = found.source.into_iter().zip(found.target).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(join.num_rows() as usize, source.len());
    }

    #[test]
    fn test_partitions_read_as_they_were_written(
        rows in keys(), cut in 1usize..20, parts in 1usize..5, limit in 0u64..400,
    ) {
        let mut held = RowPartitions::new(batch(&[]).schema(), parts, limit, &DiskQuota::default());
        let mut model: HashMap<usize, Vec<Option<i64>>> = HashMap::new();
        for (number, rows) in rows.chunks(cut).enumerate() {
            let part = number * 7 % parts;
            model.entry(part).or_default().extend(rows);
            held.push_to(&batch(rows), part).unwrap();
        }
        for part in 0..parts {
            let expected = model.remove(&part).unwrap_or_default();
            prop_assert_eq!(held.rows()[part] as usize, expected.len());
            prop_assert_eq!(keys_of(&held.read(part).unwrap()), expected);
        }
    }

    #[test]
    fn test_rows_of_one_key_are_in_one_partition(rows in keys(), parts in 1usize..5, limit in 0u64..400) {
        let encoder = KeyJoin::encoder(&batch(&[]).schema()).unwrap();
        let mut held = RowPartitions::new(batch(&[]).schema(), parts, limit, &DiskQuota::default());
        let keys = encoder.encode(batch(&rows).columns()).unwrap();
        held.push_by_key(&batch(&rows), &keys).unwrap();
        let mut seen = HashMap::new();
        let mut count = 0;
        for part in 0..parts {
            for key in keys_of(&held.read(part).unwrap()) {
                count += 1;
                prop_assert_eq!(*seen.entry(key).or_insert(part), part);
            }
        }
        prop_assert_eq!(count, rows.len());
    }
}

#[test]
fn test_temporary_files_stay_within_their_limit() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(5000); 10]));
    let schema = Arc::new(Schema::new(vec![Field::new("t", DataType::Utf8, true)]));
    let rows = RecordBatch::try_new(schema.clone(), vec![text]).unwrap();
    let stream = |count: usize| {
        let batches: Vec<_> = (0..count).map(|_| Ok(rows.clone())).collect();
        Box::new(RecordBatchIterator::new(batches, schema.clone()))
    };
    let quota = DiskQuota::new(200_000);
    let held = MergeSource::read(stream(2), 100, &quota).unwrap();
    assert!(held.spilled_bytes() > 100_000);
    assert_eq!(quota.used(), held.spilled_bytes());
    assert_eq!(held.nth(1).unwrap().unwrap().num_rows(), 10);
    assert!(held.nth(2).is_none());
    // Others' files count.
    let mut parts = RowPartitions::new(schema.clone(), 2, 10, &quota);
    parts.push_to(&rows, 1).unwrap();
    let error = parts.push_to(&rows, 1).unwrap_err().to_string();
    assert!(error.contains("at most 200000 bytes"), "{error}");
    drop(parts);
    assert_eq!(quota.used(), held.spilled_bytes());
    let error = MergeSource::read(stream(3), 100, &quota).unwrap_err().to_string();
    assert!(error.contains("max_temp_directory_size"), "{error}");
    drop(held);
    assert_eq!(quota.used(), 0);
    MergeSource::read(stream(3), 100, &quota).unwrap();
    let mut parts = RowPartitions::new(schema.clone(), 2, 10, &DiskQuota::new(1000));
    let error = parts.push_to(&rows, 1).unwrap_err();
    assert!(error.to_string().contains("1000 bytes"), "{error}");
    assert!(parts.push_to(&rows, 7).is_err());
}
