//! The test table: four rows with a column of each kind, with nulls.

use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, FixedSizeListBuilder, Float32Builder};
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, DurationSecondArray,
    Float32Array, Float64Array, Int32Array, Int64Array, LargeStringArray, ListArray, RecordBatch, StringArray,
    StringViewArray, StructArray, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray,
    UInt64Array, UInt8Array,
};
use arrow_schema::{DataType, Field};

/// Microseconds of a day.
pub(crate) const DAY: i64 = 86_400_000_000;
/// 2021-01-01 in days since 1970.
pub(crate) const JANUARY: i64 = 18_628;

pub(crate) fn batch() -> RecordBatch {
    let midnights: Vec<i64> = (0..4).map(|day| (JANUARY + day) * DAY).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i", Arc::new(Int64Array::from(vec![Some(1), Some(2), None, Some(4)]))),
        ("I", Arc::new(Int32Array::from(vec![10, 20, 30, 40]))),
        (
            "s",
            Arc::new(StringArray::from(vec![Some("a"), Some("b"), None, Some("Dd")])),
        ),
        ("my col", Arc::new(Int32Array::from(vec![1, 2, 3, 4]))),
        ("st", Arc::new(point())),
        ("ts", Arc::new(TimestampMicrosecondArray::from(midnights.clone()))),
        (
            "tz",
            Arc::new(TimestampMicrosecondArray::from(midnights.clone()).with_timezone("UTC")),
        ),
        (
            "ns",
            Arc::new(TimestampNanosecondArray::from_iter_values(
                midnights.iter().map(|us| us * 1000),
            )),
        ),
        (
            "d",
            Arc::new(Date32Array::from_iter_values(
                (0..4).map(|day| i32::try_from(JANUARY).unwrap() + day),
            )),
        ),
        ("dec", Arc::new(decimals())),
        ("l", Arc::new(lists())),
        (
            "b",
            Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)])),
        ),
        (
            "f",
            Arc::new(Float32Array::from(vec![Some(1.2), Some(f32::NAN), None, Some(4.0)])),
        ),
        (
            "g",
            Arc::new(Float64Array::from(vec![Some(1.2), Some(f64::NAN), None, Some(4.0)])),
        ),
        ("u", Arc::new(UInt64Array::from(vec![1, 2, u64::MAX, 4]))),
        ("u8", Arc::new(UInt8Array::from(vec![1, 2, 255, 4]))),
        (
            "by",
            Arc::new(BinaryArray::from(vec![
                Some(&b"a"[..]),
                Some(b"\xff"),
                None,
                Some(b"d"),
            ])),
        ),
        ("fb", Arc::new(fixed_binary())),
        ("du", Arc::new(DurationSecondArray::from(vec![1, 2, 3, 4]))),
        ("t", Arc::new(Time64MicrosecondArray::from(vec![1, 2, 3, 4]))),
        (
            "ls",
            Arc::new(LargeStringArray::from(vec![Some("a"), Some("b"), None, Some("Dd")])),
        ),
        (
            "sv",
            Arc::new(StringViewArray::from(vec![Some("a"), Some("b"), None, Some("Dd")])),
        ),
        (
            "dict",
            Arc::new(
                vec![Some("a"), Some("b"), None, Some("a")]
                    .into_iter()
                    .collect::<DictionaryArray<Int32Type>>(),
            ),
        ),
        ("v", Arc::new(vectors())),
        ("n", Arc::new(Int32Array::from(vec![1, 2, 3, 4]))),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
        .collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), arrays).unwrap()
}

fn point() -> StructArray {
    let y: ArrayRef = Arc::new(StringArray::from(vec![Some("p"), Some("q"), None, Some("r")]));
    let y = StructArray::from(vec![(Arc::new(Field::new("Z", DataType::Utf8, true)), y)]);
    let x: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), None, Some(4)]));
    StructArray::from(vec![
        (Arc::new(Field::new("x", DataType::Int64, true)), x),
        (
            Arc::new(Field::new("y", y.data_type().clone(), true)),
            Arc::new(y) as ArrayRef,
        ),
    ])
}

fn decimals() -> Decimal128Array {
    Decimal128Array::from(vec![Some(150), Some(225), None, Some(400)])
        .with_precision_and_scale(10, 2)
        .unwrap()
}

fn lists() -> ListArray {
    ListArray::from_iter_primitive::<Int64Type, _, _>(vec![
        Some(vec![Some(1), Some(2)]),
        Some(vec![Some(3)]),
        None,
        Some(vec![]),
    ])
}

fn fixed_binary() -> arrow_array::FixedSizeBinaryArray {
    let mut builder = FixedSizeBinaryBuilder::new(2);
    for value in [Some(b"aa"), Some(b"bb"), None, Some(b"dd")] {
        match value {
            Some(value) => builder.append_value(value).unwrap(),
            None => builder.append_null(),
        }
    }
    builder.finish()
}

fn vectors() -> arrow_array::FixedSizeListArray {
    let mut builder = FixedSizeListBuilder::new(Float32Builder::new(), 2);
    for row in 0..4_u8 {
        builder.values().append_slice(&[f32::from(row), 1.0]);
        builder.append(row != 2);
    }
    builder.finish()
}

/// Values of column `n` in the rows that a predicate keeps.
pub(crate) fn kept(predicate: &crate::Predicate) -> Vec<i32> {
    let batch = batch();
    let names = predicate.columns();
    // Only the columns that it names, in another order than the schema's.
    let indices: Vec<usize> = names
        .iter()
        .rev()
        .map(|name| batch.schema().index_of(name).unwrap())
        .collect();
    let mask = predicate.evaluate(&batch.project(&indices).unwrap()).unwrap();
    assert_eq!(mask, predicate.evaluate(&batch).unwrap());
    (0..4)
        .filter(|row| mask.is_valid(*row) && mask.value(*row))
        .map(|row| i32::try_from(row).unwrap() + 1)
        .collect()
}
