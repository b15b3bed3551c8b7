//! Arrays of every type that version 2.0 holds.

use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, Int32Builder, LargeListBuilder, ListBuilder, StringBuilder};
use arrow_array::types::{Int16Type, Int8Type};
use arrow_array::*;
use arrow_schema::{DataType, Field, Fields};

/// A deterministic stream of numbers.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn flag(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.next().is_multiple_of(one_in)
    }
}

/// One column of each kind; every `one_in`th value is null where the kind may hold nulls, none for 0.
pub(super) fn columns(rows: usize, one_in: u64, seed: u64) -> Vec<(&'static str, ArrayRef)> {
    let mut n = Numbers(seed);
    let ints: Vec<Option<i64>> = (0..rows)
        .map(|_| if n.flag(one_in) { None } else { Some(n.next() as i64) })
        .collect();
    let words: Vec<Option<String>> = (0..rows)
        .map(|_| {
            if n.flag(one_in) {
                None
            } else {
                Some("é".repeat((n.next() % 9) as usize) + &(n.next() % 1000).to_string())
            }
        })
        .collect();
    let few: Vec<Option<&str>> = (0..rows)
        .map(|_| {
            if n.flag(one_in) {
                None
            } else {
                Some(["ab", "", "xyz"][(n.next() % 3) as usize])
            }
        })
        .collect();
    let vectors = FixedSizeListArray::from_iter_primitive::<types::Float32Type, _, _>(
        (0..rows).map(|_| {
            if n.flag(one_in) {
                None
            } else {
                Some((0..3).map(|_| Some(n.next() as f32)).collect::<Vec<_>>())
            }
        }),
        3,
    );
    let mut fixed = FixedSizeBinaryBuilder::new(5);
    for _ in 0..rows {
        if n.flag(one_in) {
            fixed.append_null();
        } else {
            fixed.append_value(&n.next().to_le_bytes()[..5]).unwrap();
        }
    }
    let keyed: DictionaryArray<Int8Type> = few.iter().copied().collect();
    let wide_keyed: DictionaryArray<Int16Type> = words
        .iter()
        .map(|w| w.as_deref().map(|w| &w[..w.len().min(2) & !1]))
        .collect();
    vec![
        ("int64", Arc::new(Int64Array::from(ints.clone()))),
        (
            "int8",
            Arc::new(Int8Array::from_iter(ints.iter().map(|v| v.map(|v| v as i8)))),
        ),
        (
            "double",
            Arc::new(Float64Array::from_iter(ints.iter().map(|v| v.map(|v| v as f64)))),
        ),
        (
            "bool",
            Arc::new(BooleanArray::from_iter(ints.iter().map(|v| v.map(|v| v % 2 == 0)))),
        ),
        (
            "decimal",
            Arc::new(
                Decimal128Array::from_iter(ints.iter().map(|v| v.map(i128::from)))
                    .with_precision_and_scale(30, 2)
                    .unwrap(),
            ),
        ),
        (
            "timestamp",
            Arc::new(TimestampMicrosecondArray::from_iter(ints.clone()).with_timezone("Europe/Paris")),
        ),
        ("null", Arc::new(NullArray::new(rows))),
        ("words", Arc::new(StringArray::from(words.clone()))),
        ("large_words", Arc::new(LargeStringArray::from(words.clone()))),
        ("few", Arc::new(StringArray::from(few.clone()))),
        (
            "binary",
            Arc::new(BinaryArray::from_iter(
                words.iter().map(|w| w.as_ref().map(|w| w.as_bytes())),
            )),
        ),
        ("fixed", Arc::new(fixed.finish())),
        ("vector", Arc::new(vectors)),
        ("keyed", Arc::new(keyed)),
        ("wide_keyed", Arc::new(wide_keyed)),
        ("lists", lists(rows, one_in, &mut n)),
        ("lists_of_lists", lists_of_lists(rows, one_in, &mut n)),
        ("structs", structs(rows, one_in, &mut n)),
        ("list_of_structs", list_of_structs(rows, one_in, &mut n)),
        ("all_null", new_null_array(&DataType::Utf8, rows)),
    ]
}

fn lists(rows: usize, one_in: u64, n: &mut Numbers) -> ArrayRef {
    let mut lists = ListBuilder::new(Int32Builder::new());
    for _ in 0..rows {
        if n.flag(one_in) {
            lists.append_null();
            continue;
        }
        for _ in 0..n.next() % 4 {
            if n.flag(one_in) {
                lists.values().append_null();
            } else {
                lists.values().append_value(n.next() as i32);
            }
        }
        lists.append(true);
    }
    Arc::new(lists.finish())
}

fn lists_of_lists(rows: usize, one_in: u64, n: &mut Numbers) -> ArrayRef {
    let mut outer = LargeListBuilder::new(ListBuilder::new(StringBuilder::new()));
    for _ in 0..rows {
        if n.flag(one_in) {
            outer.append_null();
            continue;
        }
        for _ in 0..n.next() % 3 {
            let inner = outer.values();
            if n.flag(one_in) {
                inner.append_null();
                continue;
            }
            for _ in 0..n.next() % 3 {
                inner.values().append_value((n.next() % 50).to_string());
            }
            inner.append(true);
        }
        outer.append(true);
    }
    Arc::new(outer.finish())
}

fn structs(rows: usize, one_in: u64, n: &mut Numbers) -> ArrayRef {
    let a: ArrayRef = Arc::new(Int32Array::from_iter((0..rows).map(|_| {
        if n.flag(one_in) {
            None
        } else {
            Some(n.next() as i32)
        }
    })));
    let b = lists(rows, one_in, n);
    let inner: ArrayRef = Arc::new(StructArray::from(vec![(
        Arc::new(Field::new("x", DataType::Int32, true)),
        a.clone(),
    )]));
    let fields = Fields::from(vec![
        Field::new("a", DataType::Int32, true),
        Field::new("b", b.data_type().clone(), true),
        Field::new("inner", inner.data_type().clone(), true),
    ]);
    Arc::new(StructArray::new(fields, vec![a, b, inner], None))
}

fn list_of_structs(rows: usize, one_in: u64, n: &mut Numbers) -> ArrayRef {
    let lengths: Vec<usize> = (0..rows).map(|_| (n.next() % 3) as usize).collect();
    let items = structs(lengths.iter().sum(), one_in, n);
    let offsets = arrow_buffer::OffsetBuffer::<i32>::from_lengths(lengths);
    Arc::new(ListArray::new(
        Arc::new(Field::new("item", items.data_type().clone(), true)),
        offsets,
        items,
        None,
    ))
}

/// A batch of all columns.
pub(super) fn batch(rows: usize, one_in: u64, seed: u64) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns(rows, one_in, seed)
            .into_iter()
            .map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}
