//! Pruning against brute force: a pruned group never holds a row that the condition keeps.
//!
//! Cases come from a generator of our own: proptest would enable features of DataFusion's dependencies, which would be compiled twice.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Float32Array, Float64Array, Int32Array, RecordBatch, StringArray,
    StructArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};

use crate::{ColumnRange, ColumnRanges, Predicate};

struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

const WORDS: [&str; 8] = ["", "a", "ab", "abc", "b", "bé", "c%", "zz"];
const FLOATS: [f64; 9] = [
    -5.0,
    -0.0,
    0.0,
    0.5,
    3.0,
    7.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

fn schema() -> Schema {
    let inner = Field::new("x", DataType::Int32, true);
    Schema::new(vec![
        Field::new("i", DataType::Int32, true),
        Field::new("j", DataType::Int32, true),
        Field::new("u", DataType::UInt64, true),
        Field::new("f", DataType::Float64, true),
        Field::new("g", DataType::Float32, true),
        Field::new("s", DataType::Utf8, true),
        Field::new("b", DataType::Boolean, true),
        Field::new("d", DataType::Date32, true),
        Field::new("st", DataType::Struct(vec![inner].into()), true),
        Field::new("no", DataType::Int32, true),
    ])
}

/// A few rows whose values lie near each other, so that conditions rule groups out.
fn group(n: &mut Numbers) -> RecordBatch {
    let rows = 1 + n.below(4);
    let base = n.below(12) as i32 - 6;
    let nulls = n.pick(&[0, 0, 3, 1]);
    let null = |n: &mut Numbers| nulls > 0 && n.below(nulls) == 0;
    let ints = |n: &mut Numbers| -> Vec<Option<i32>> {
        let values = (0..rows).map(|_| if null(n) { None } else { Some(base + n.below(3) as i32) });
        values.collect()
    };
    let (i, j, x) = (ints(n), ints(n), ints(n));
    let few: Vec<f64> = (0..2).map(|_| n.pick(&FLOATS)).collect();
    let words: Vec<&str> = (0..2).map(|_| n.pick(&WORDS)).collect();
    let floats: Vec<Option<f64>> = i
        .iter()
        .map(|v| v.map(|_| n.pick(&few) * n.pick(&[1.0, -1.0])))
        .collect();
    let inner = Arc::new(Field::new("x", DataType::Int32, true));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(i.clone())),
        Arc::new(Int32Array::from(j.clone())),
        Arc::new(UInt64Array::from_iter(
            j.iter().map(|v| v.map(|v| v.unsigned_abs().into())),
        )),
        Arc::new(Float64Array::from(floats.clone())),
        Arc::new(Float32Array::from_iter(floats.iter().map(|v| v.map(|v| v as f32)))),
        Arc::new(StringArray::from_iter(i.iter().map(|v| v.map(|_| n.pick(&words))))),
        Arc::new(BooleanArray::from_iter(j.iter().map(|v| v.map(|v| v > base)))),
        Arc::new(Date32Array::from_iter(i.iter().map(|v| v.map(|v| 18_628 + v)))),
        Arc::new(StructArray::from(vec![(
            inner,
            Arc::new(Int32Array::from(x)) as ArrayRef,
        )])),
        Arc::new(Int32Array::from(i)),
    ];
    RecordBatch::try_new(Arc::new(schema()), columns).unwrap()
}

/// Bounds of one column of a group, without NaN, now and then unknown or too wide.
fn range(n: &mut Numbers, column: &ArrayRef) -> ColumnRange {
    let text = |row: usize| arrow_cast::display::array_value_to_string(column, row).unwrap();
    let mut order: Vec<usize> = (0..column.len())
        .filter(|row| column.is_valid(*row) && text(*row) != "NaN")
        .collect();
    let rank = |row: usize| -> (f64, String) {
        let number = arrow_cast::cast(&column.slice(row, 1), &DataType::Float64);
        let number = number.ok().filter(|_| column.data_type() != &DataType::Utf8);
        let number =
            number.map(|a| arrow_array::cast::AsArray::as_primitive::<arrow_array::types::Float64Type>(&a).value(0));
        (number.unwrap_or(0.0), text(row))
    };
    let is_text = matches!(column.data_type(), DataType::Utf8 | DataType::Date32);
    order.sort_by(|a, b| {
        let (a, b) = (rank(*a), rank(*b));
        if is_text {
            a.1.cmp(&b.1)
        } else {
            a.0.total_cmp(&b.0)
        }
    });
    let bound = |row: Option<&usize>, n: &mut Numbers| match row.filter(|_| n.below(8) > 0) {
        Some(row) => column.slice(*row, 1),
        None => arrow_array::new_null_array(column.data_type(), 1),
    };
    let (min, max) = (bound(order.first(), n), bound(order.last(), n));
    let nulls = Some(column.null_count() as u64).filter(|_| n.below(6) > 0);
    ColumnRange {
        min,
        max,
        null_count: vec![nulls],
    }
}

fn ranges(n: &mut Numbers, batch: &RecordBatch) -> ColumnRanges {
    let mut out = ColumnRanges::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        match field.name().as_str() {
            // Nothing is known of this one.
            "no" => continue,
            "st" => {
                let x = arrow_array::cast::AsArray::as_struct(column).column(0).clone();
                out.insert(vec!["st".into(), "x".into()], range(n, &x));
            }
            name => {
                out.insert(vec![name.to_owned()], range(n, column));
            }
        }
    }
    out
}

fn condition(n: &mut Numbers, depth: u32) -> String {
    if depth > 0 && n.below(3) > 0 {
        let (a, b) = (condition(n, depth - 1), condition(n, depth - 1));
        return match n.below(5) {
            0 | 1 => format!("({a} AND {b})"),
            2 => format!("({a} OR {b})"),
            3 => format!("NOT ({a})"),
            _ => format!(
                "({a}) IS {}",
                n.pick(&["TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "NULL", "NOT NULL"])
            ),
        };
    }
    let compare = n.pick(&["=", "!=", "<", "<=", ">", ">="]);
    let number = n.below(16) as i64 - 8;
    let word = n.pick(&WORDS);
    match n.below(16) {
        0 => format!("i {compare} {number}"),
        1 => format!("i {compare} j"),
        2 => format!("u {compare} {}", number.abs()),
        3 => format!("f {compare} {}", n.pick(&["0.0", "-0.0", "0.5", "3", "-5"])),
        4 => format!("g {compare} {}", n.pick(&["0.0", "0.5", "3", "-7.0"])),
        5 => format!("s {compare} '{word}'"),
        6 => format!(
            "s {} '{word}{}'",
            n.pick(&["LIKE", "NOT LIKE"]),
            n.pick(&["%", "_", "", "%b", "\\%"])
        ),
        7 => format!("{}b", n.pick(&["", "NOT "])),
        8 => format!("d {compare} date '2021-01-{:02}'", 1 + n.below(9)),
        9 => format!("st.x {compare} {number}"),
        10 => format!(
            "{} IS {}NULL",
            n.pick(&["i", "f", "s", "b", "st.x", "no"]),
            n.pick(&["", "NOT "])
        ),
        11 => format!("i {}IN ({number}, {}, NULL)", n.pick(&["", "NOT "]), number + 2),
        12 => format!(
            "f {}BETWEEN {} AND {}",
            n.pick(&["", "NOT "]),
            number.min(2),
            number.max(2)
        ),
        13 => format!("cast(i as bigint) {compare} {number}"),
        14 => format!(
            "{} {compare} {number}",
            n.pick(&["i + 1", "abs(j)", "no", "cast(g as double)", "cast(s as int)"])
        ),
        _ => format!("s {}IN ('{word}', '{}')", n.pick(&["", "NOT "]), n.pick(&WORDS)),
    }
}

#[test]
fn test_a_group_that_is_ruled_out_holds_no_row_that_is_kept() {
    let mut n = Numbers(4);
    let (mut ruled_out, mut empty) = (0, 0);
    for _ in 0..6000 {
        let text = condition(&mut n, 2);
        let predicate = Predicate::parse_sql(&text, &schema()).unwrap_or_else(|error| panic!("{text}: {error}"));
        for _ in 0..4 {
            let batch = group(&mut n);
            let ranges = ranges(&mut n, &batch);
            // A cast of text to a number may fail: then there is nothing to compare with.
            let Ok(kept) = predicate.evaluate(&batch) else { continue };
            let may_keep = predicate.prune(&ranges, &[batch.num_rows() as u64]);
            empty += usize::from(kept.true_count() == 0);
            if may_keep == [false] {
                ruled_out += 1;
                assert_eq!(kept.true_count(), 0, "{text}\n{batch:?}\n{ranges:?}");
            }
        }
    }
    assert!(
        ruled_out * 3 > empty,
        "{ruled_out} of {empty} groups without a row are ruled out"
    );
}

fn int_ranges(bounds: &[(i32, i32)]) -> (ColumnRanges, Vec<u64>) {
    let range = ColumnRange {
        min: Arc::new(Int32Array::from_iter_values(bounds.iter().map(|b| b.0))),
        max: Arc::new(Int32Array::from_iter_values(bounds.iter().map(|b| b.1))),
        null_count: vec![Some(0); bounds.len()],
    };
    ([(vec!["i".to_owned()], range)].into(), vec![10; bounds.len()])
}

#[track_caller]
fn assert_kept(text: &str, expected: [bool; 3]) {
    let (ranges, rows) = int_ranges(&[(0, 9), (10, 19), (20, 29)]);
    let predicate = Predicate::parse_sql(text, &schema()).unwrap();
    assert_eq!(predicate.prune(&ranges, &rows), expected, "{text}");
}

#[test]
fn test_bounds_rule_out_what_they_can() {
    assert_kept("i = 12", [false, true, false]);
    assert_kept("i > 19", [false, false, true]);
    assert_kept("i >= 19", [false, true, true]);
    assert_kept("i < 0", [false, false, false]);
    assert_kept("NOT (i < 20)", [false, false, true]);
    assert_kept("i BETWEEN 5 AND 11", [true, true, false]);
    assert_kept("i NOT BETWEEN 0 AND 19", [false, false, true]);
    assert_kept("i IN (3, 25)", [true, false, true]);
    assert_kept("i > 19 OR i < 5", [true, false, true]);
    assert_kept("i > 5 AND i < 15", [true, true, false]);
    assert_kept("i IS NULL", [false, false, false]);
    assert_kept("cast(i as bigint) = 25", [false, false, true]);
    assert_kept("12 < i AND i < 18.5", [false, true, false]);
    assert_kept("i + 1 > 100", [true, true, true]);
    assert_kept("i > 100 AND j = 1", [false, false, false]);
    assert_kept("i > 100 OR j = 1", [true, true, true]);
}

#[test]
fn test_nan_may_be_anywhere() {
    let range = ColumnRange {
        min: Arc::new(Float64Array::from(vec![1.0])),
        max: Arc::new(Float64Array::from(vec![2.0])),
        null_count: vec![Some(0)],
    };
    let ranges: ColumnRanges = [(vec!["f".to_owned()], range)].into();
    let kept = |text: &str| Predicate::parse_sql(text, &schema()).unwrap().prune(&ranges, &[5])[0];
    assert!(kept("f > 5") && kept("f < 0") && kept("f = 1.5"));
    assert!(!kept("f = 5") && !kept("f > 5 AND f < 9") && !kept("f BETWEEN 3 AND 4") && !kept("f IN (0, 3)"));
}

#[test]
fn test_texts_are_ruled_out_by_what_they_start_with() {
    let range = ColumnRange {
        min: Arc::new(StringArray::from(vec![Some("bar"), Some("car"), None])),
        max: Arc::new(StringArray::from(vec![Some("bus"), None, None])),
        null_count: vec![Some(0), Some(0), Some(5)],
    };
    let ranges: ColumnRanges = [(vec!["s".to_owned()], range)].into();
    let kept = |text: &str| {
        Predicate::parse_sql(text, &schema())
            .unwrap()
            .prune(&ranges, &[5, 5, 5])
    };
    assert_eq!(kept("s LIKE 'b%'"), [true, false, false]);
    assert_eq!(kept("s LIKE 'bb%'"), [true, false, false]);
    assert_eq!(kept("s LIKE 'd%'"), [false, true, false]);
    assert_eq!(kept("s LIKE '%x'"), [true, true, false]);
    assert_eq!(kept("starts_with(s, 'a')"), [false, false, false]);
    assert_eq!(kept("s IS NULL"), [false, false, true]);
    assert_eq!(kept("s > 'bz'"), [false, true, false]);
}
