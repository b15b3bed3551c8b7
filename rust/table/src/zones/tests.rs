use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use esker_file::schema::{Field, Schema};
use proptest::prelude::*;

use super::seed::{Seed, ZONE_ROWS};
use super::{decode, ZoneCollector, ZoneMap};

const ROWS: usize = ZONE_ROWS as usize * 9 + 100;

fn collected(column: ArrayRef, cuts: &[usize]) -> Vec<Seed> {
    let batch = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap();
    let fields = batch
        .schema()
        .fields()
        .iter()
        .map(|field| Field::from_arrow(field).unwrap())
        .collect();
    let schema = Schema {
        fields,
        ..Schema::default()
    };
    let mut zones = ZoneCollector::new(&schema);
    let mut start = 0;
    for cut in cuts.iter().chain([&usize::MAX]) {
        let rows = (*cut).min(batch.num_rows() - start);
        zones.see(&batch.slice(start, rows));
        start += rows;
    }
    zones.finish().unwrap()
}

fn one(column: ArrayRef, data_type: &DataType, cuts: &[usize]) -> ZoneMap {
    let rows = column.len() as u64;
    let seeds = collected(column, cuts);
    assert_eq!(seeds.len(), 1);
    assert_eq!(seeds[0].key, "lance.seed.x");
    decode(&seeds[0].bytes, data_type, rows).unwrap()
}

fn sorted() -> ArrayRef {
    Arc::new(
        (0..ROWS as i64)
            .map(|n| (n % 7 != 0).then_some(n))
            .collect::<Int64Array>(),
    )
}

#[test]
fn test_bounds_are_those_of_the_values_however_they_come() {
    for cuts in [vec![], vec![1, 8191, 8192, 1, 20_000], vec![5000; 10]] {
        let zones = one(sorted(), &DataType::Int64, &cuts);
        let (min, max) = (
            zones.min.as_primitive::<Int64Type>(),
            zones.max.as_primitive::<Int64Type>(),
        );
        assert_eq!(zones.offsets.len(), 11);
        for (zone, rows) in zones.offsets.windows(2).enumerate() {
            let values: Vec<i64> = (rows[0] as i64..rows[1] as i64).filter(|n| n % 7 != 0).collect();
            assert_eq!(
                (min.value(zone), max.value(zone)),
                (values[0], values[values.len() - 1])
            );
            assert_eq!(zones.null_count[zone], rows[1] - rows[0] - values.len() as u64);
        }
    }
}

#[test]
fn test_columns_whose_zones_are_alike_have_no_seed() {
    let mixed: Int64Array = (0..ROWS as i64 * 4).map(|n| n * 7919 % 100_003).collect();
    assert!(collected(Arc::new(mixed), &[]).is_empty());
    let same = Int64Array::from(vec![5; ROWS]);
    assert!(collected(Arc::new(same), &[]).is_empty());
    let none = Int64Array::from(vec![None; ROWS]);
    assert!(collected(Arc::new(none), &[]).is_empty());
    let few: Int64Array = (0..ZONE_ROWS as i64 * 7).collect();
    assert!(collected(Arc::new(few), &[]).is_empty());
}

#[test]
fn test_a_zone_with_nan_has_no_upper_bound() {
    let values = (0..ROWS).map(|n| if n % 20_000 == 3 { f64::NAN } else { n as f64 - 9000.0 });
    let zones = one(Arc::new(values.collect::<Float64Array>()), &DataType::Float64, &[]);
    let (min, max) = (
        zones.min.as_primitive::<Float64Type>(),
        zones.max.as_primitive::<Float64Type>(),
    );
    for zone in 0..zones.offsets.len() - 1 {
        let has_nan = (zones.offsets[zone]..zones.offsets[zone + 1]).any(|n| n % 20_000 == 3);
        assert_eq!(max.is_null(zone), has_nan);
        assert!(min.value(zone) <= zones.offsets[zone] as f64 - 9000.0 + 1.0);
    }
}

#[test]
fn test_long_texts_have_short_bounds_on_the_right_side() {
    let text = |n: usize| format!("{:05}{}", n, "ä\u{d7ff}".repeat(40));
    let values: Vec<String> = (0..ROWS).map(text).collect();
    let zones = one(Arc::new(StringArray::from(values.clone())), &DataType::Utf8, &[]);
    for (zone, rows) in zones.offsets.windows(2).enumerate() {
        let (low, high) = (
            zones.min.as_string::<i32>().value(zone),
            zones.max.as_string::<i32>().value(zone),
        );
        assert!(low.len() <= 64 && high.len() <= 64);
        assert!(low <= values[rows[0] as usize].as_str() && high >= values[rows[1] as usize - 1].as_str());
    }
    let bytes: Vec<Vec<u8>> = (0..ROWS)
        .map(|n| [&(n as u32).to_be_bytes()[..], &[0xff; 80]].concat())
        .collect();
    let column = BinaryArray::from_iter_values(bytes.iter());
    let zones = one(Arc::new(column), &DataType::Binary, &[]);
    for (zone, rows) in zones.offsets.windows(2).enumerate() {
        let (low, high) = (
            zones.min.as_binary::<i32>().value(zone),
            zones.max.as_binary::<i32>().value(zone),
        );
        assert!(low <= bytes[rows[0] as usize].as_slice() && high >= bytes[rows[1] as usize - 1].as_slice());
    }
}

#[test]
fn test_seeds_of_other_types_rows_or_bounds_say_nothing() {
    let seeds = collected(sorted(), &[]);
    let bytes = &seeds[0].bytes;
    assert!(decode(bytes, &DataType::Int64, ROWS as u64).is_some());
    assert!(decode(bytes, &DataType::UInt64, ROWS as u64).is_none());
    assert!(decode(bytes, &DataType::Int32, ROWS as u64).is_none());
    assert!(decode(bytes, &DataType::Date64, ROWS as u64).is_none());
    for rows in [0, 1, ROWS as u64 - 1, ROWS as u64 + 1, u64::MAX] {
        assert!(decode(bytes, &DataType::Int64, rows).is_none());
    }
    for end in 0..bytes.len() {
        assert!(decode(&bytes[..end], &DataType::Int64, ROWS as u64).is_none());
    }
}

#[test]
fn test_one_other_byte_anywhere_is_no_panic() {
    let texts: Vec<String> = (0..ROWS).map(|n| format!("{n:09}")).collect();
    let texts: ArrayRef = Arc::new(StringArray::from(texts));
    for (data_type, array) in [(DataType::Int64, sorted()), (DataType::Utf8, texts)] {
        let bytes = collected(array, &[])[0].bytes.to_vec();
        for place in 0..bytes.len() {
            for byte in [0, 1, 3, 45, 127, 255] {
                let mut other = bytes.clone();
                other[place] = byte;
                if let Some(zones) = decode(&other, &data_type, ROWS as u64) {
                    assert_eq!(zones.offsets.last().copied(), Some(ROWS as u64));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn test_any_bytes_are_a_zone_map_or_nothing(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        thread_local! {
            static SEEDS: Vec<(DataType, Vec<u8>)> = vec![
                (DataType::Int64, collected(sorted(), &[])[0].bytes.to_vec()),
                (DataType::Utf8, {
                    let texts: Vec<String> = (0..ROWS).map(|n| format!("{n:09}")).collect();
                    collected(Arc::new(StringArray::from(texts)), &[])[0].bytes.to_vec()
                }),
            ];
        }
        SEEDS.with(|seeds| {
            for (data_type, bytes) in seeds {
                let mut bytes = bytes.clone();
                for (place, byte) in &changes {
                    let place = place.index(bytes.len());
                    bytes[place] = *byte;
                }
                if let Some(zones) = decode(&bytes, data_type, ROWS as u64) {
                    prop_assert_eq!(zones.offsets.last().copied(), Some(ROWS as u64));
                    prop_assert_eq!(zones.min.len() + 1, zones.offsets.len());
                    prop_assert!(zones.min.data_type() == data_type && zones.max.len() == zones.min.len());
                }
            }
            Ok(())
        })?;
    }
}
