//! Arrays that versions 2.1 and 2.2 hold and 2.0 does not, and fields that ask for an encoding.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema};

use super::samples::{self, Numbers};
use crate::FileVersion;

/// What fields of numbers and of strings may ask for.
const HINTS: [(&str, &str); 8] = [
    ("compression", "zstd"),
    ("compression", "lz4"),
    ("compression", "none"),
    ("compression", "fsst"),
    ("rle-threshold", "0.9"),
    ("dict-divisor", "1"),
    ("structural-encoding", "fullzip"),
    ("structural-encoding", "miniblock"),
];

fn nulls(rows: usize, one_in: u64, n: &mut Numbers) -> Option<NullBuffer> {
    (one_in > 0).then(|| (0..rows).map(|_| !n.flag(one_in)).collect())
}

/// Structs that may be null themselves, around lists that may be too.
fn null_structs(rows: usize, one_in: u64, n: &mut Numbers) -> ArrayRef {
    let mut lists = ListBuilder::new(Int64Builder::new());
    for _ in 0..rows {
        if n.flag(one_in) {
            lists.append_null();
            continue;
        }
        for _ in 0..n.next() % 3 {
            lists.values().append_option((!n.flag(one_in)).then(|| n.next() as i64));
        }
        lists.append(true);
    }
    let lists: ArrayRef = Arc::new(lists.finish());
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values((0..rows).map(|_| (n.next() % 7) as i32)));
    let inner_fields = Fields::from(vec![Field::new("l", lists.data_type().clone(), true)]);
    let inner: ArrayRef = Arc::new(StructArray::new(inner_fields, vec![lists], nulls(rows, one_in, n)));
    let fields = Fields::from(vec![
        Field::new("inner", inner.data_type().clone(), true),
        Field::new("n", DataType::Int32, true),
    ]);
    Arc::new(StructArray::new(fields, vec![inner, numbers], nulls(rows, one_in, n)))
}

fn maps(rows: usize, one_in: u64, n: &mut Numbers) -> ArrayRef {
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    for _ in 0..rows {
        for key in 0..n.next() % 3 {
            maps.keys().append_value(format!("key {key}"));
            maps.values().append_option((!n.flag(one_in)).then(|| n.next() as i64));
        }
        maps.append(!n.flag(one_in)).unwrap();
    }
    Arc::new(maps.finish())
}

/// Values that are long, alike, in runs or small: what the compressions are for.
fn shaped(rows: usize, one_in: u64, n: &mut Numbers) -> Vec<(String, ArrayRef)> {
    let mut out: Vec<(String, ArrayRef)> = Vec::new();
    let numbers: [(&str, fn(u64, usize) -> i64); 4] = [
        ("small", |random, _| (random % 100) as i64),
        ("runs", |_, row| (row / 40) as i64),
        ("few", |random, _| ((random % 3) as i64) << 50),
        ("same", |_, _| 7),
    ];
    for (name, value) in numbers {
        let array = (0..rows).map(|row| (!n.flag(one_in)).then(|| value(n.next(), row)));
        out.push((format!("{name} numbers"), Arc::new(Int64Array::from_iter(array))));
    }
    let texts: [(&str, fn(u64, usize) -> String); 4] = [
        ("long", |random, _| {
            format!("{random:x} ").repeat(30 + (random % 40) as usize)
        }),
        ("alike", |random, _| format!("https://example.org/{}", random % 100_000)),
        ("few", |random, _| "ab".repeat((random % 3) as usize)),
        ("same", |_, _| "always".to_string()),
    ];
    for (name, value) in texts {
        let array = (0..rows).map(|row| (!n.flag(one_in)).then(|| value(n.next(), row)));
        let array: StringArray = array.collect();
        out.push((format!("{name} texts"), Arc::new(array)));
    }
    let wide = (0..rows).map(|_| Some((0..80).map(|_| Some(n.next() as f32)).collect::<Vec<_>>()));
    let wide = FixedSizeListArray::from_iter_primitive::<types::Float32Type, _, _>(wide, 80);
    out.push(("wide vectors".to_string(), Arc::new(wide)));
    let holed = (0..rows).map(|_| {
        Some(
            (0..5)
                .map(|_| (!n.flag(one_in)).then(|| n.next() as i16))
                .collect::<Vec<_>>(),
        )
    });
    let holed = FixedSizeListArray::from_iter_primitive::<types::Int16Type, _, _>(holed, 5);
    out.push(("holed vectors".to_string(), Arc::new(holed)));
    out
}

fn packed(rows: usize, variable: bool, n: &mut Numbers) -> ArrayRef {
    let mut fields = vec![
        Field::new("a", DataType::Int32, true),
        Field::new("b", DataType::Float64, true),
    ];
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values((0..rows).map(|_| n.next() as i32))),
        Arc::new(Float64Array::from_iter_values((0..rows).map(|_| n.next() as f64))),
    ];
    if variable {
        fields.push(Field::new("c", DataType::Utf8, true));
        let texts = (0..rows).map(|_| "x".repeat((n.next() % 5) as usize));
        columns.push(Arc::new(StringArray::from_iter_values(texts)));
    }
    Arc::new(StructArray::new(fields.into(), columns, None))
}

/// A batch of every kind that the version holds; every `one_in`th value is null, none for 0.
pub(super) fn batch(version: FileVersion, rows: usize, one_in: u64, seed: u64) -> RecordBatch {
    let n = &mut Numbers(seed ^ 0x55);
    let mut columns: Vec<(String, ArrayRef)> = samples::columns(rows, one_in, seed)
        .into_iter()
        .map(|(name, array)| (name.to_string(), array))
        .collect();
    columns.push(("null structs".to_string(), null_structs(rows, one_in, n)));
    columns.extend(shaped(rows, one_in, n));
    if version >= FileVersion::V2_2 {
        columns.push(("maps".to_string(), maps(rows, one_in, n)));
    }
    let mut fields: Vec<Field> = Vec::new();
    for (name, array) in &columns {
        let mut field = Field::new(name, array.data_type().clone(), true);
        let (key, value) = HINTS[(n.next() % HINTS.len() as u64) as usize];
        let asks = n.next().is_multiple_of(3) && (name.contains("numbers") || name.contains("texts"));
        if asks {
            let hint = HashMap::from([(format!("lance-encoding:{key}"), value.to_string())]);
            field = field.with_metadata(hint);
        }
        fields.push(field);
    }
    let rows_together = packed(rows, version >= FileVersion::V2_2, n);
    let asked = HashMap::from([("lance-encoding:packed".to_string(), "true".to_string())]);
    fields.push(Field::new("packed", rows_together.data_type().clone(), true).with_metadata(asked));
    let mut arrays: Vec<ArrayRef> = columns.into_iter().map(|(_, array)| array).collect();
    arrays.push(rows_together);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}
