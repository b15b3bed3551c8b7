//! Serialized Arrow expressions by the rows that they keep, and invalid bytes.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field};

use crate::{Comparisons, Predicate};

/// What pyarrow 26 makes of expressions over i, f, s and st{a, b}: name, bytes, rows kept.
const CASES: &[(&str, &[u8], &[usize])] = &[
    (
        "comparison",
        include_bytes!("../../../../fuzz/corpus/arrow_expression/comparison"),
        &[1, 2],
    ),
    (
        "kleene",
        include_bytes!("../../../../fuzz/corpus/arrow_expression/kleene"),
        &[1],
    ),
    (
        "nested_field",
        include_bytes!("../../../../fuzz/corpus/arrow_expression/nested_field"),
        &[2],
    ),
    (
        "struct_field",
        include_bytes!("../../../../fuzz/corpus/arrow_expression/struct_field"),
        &[2],
    ),
    (
        "is_in",
        include_bytes!("../../../../fuzz/corpus/arrow_expression/is_in"),
        &[0, 1, 3],
    ),
    (
        "is_in_views",
        include_bytes!("../../../../fuzz/corpus/arrow_expression/is_in_views"),
        &[0, 2],
    ),
    (
        "is_in_dictionary",
        include_bytes!("../../../../fuzz/corpus/arrow_expression/is_in_dictionary"),
        &[1],
    ),
    (
        "cast",
        include_bytes!("../../../../fuzz/corpus/arrow_expression/cast"),
        &[2],
    ),
    (
        "null_nan",
        include_bytes!("../../../../fuzz/corpus/arrow_expression/null_nan"),
        &[2, 3],
    ),
    (
        "branches",
        include_bytes!("../../../../fuzz/corpus/arrow_expression/branches"),
        &[2],
    ),
    (
        "decimal",
        include_bytes!("../../../../fuzz/corpus/arrow_expression/decimal"),
        &[2],
    ),
    (
        "times",
        include_bytes!("../../../../fuzz/corpus/arrow_expression/times"),
        &[0, 1, 2, 3],
    ),
    (
        "chain",
        include_bytes!("../../../../fuzz/corpus/arrow_expression/chain"),
        &[],
    ),
];

/// Four rows; the struct of the second is null, above a 3.
fn rows() -> RecordBatch {
    let a: ArrayRef = Arc::new(Int64Array::from(vec![1, 3, 3, 4]));
    let b: ArrayRef = Arc::new(StringArray::from(vec!["p", "q", "r", "s"]));
    let fields = vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Utf8, true),
    ];
    let nulls = vec![true, false, true, true].into();
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        (
            "i",
            Arc::new(Int64Array::from(vec![Some(1), Some(2), Some(3), None])),
            true,
        ),
        (
            "f",
            Arc::new(Float64Array::from(vec![Some(0.0), Some(-1.0), Some(f64::NAN), None])),
            true,
        ),
        (
            "s",
            Arc::new(StringArray::from(vec![Some("a"), Some("x"), Some("a"), None])),
            true,
        ),
        (
            "st",
            Arc::new(StructArray::new(fields.into(), vec![a, b], Some(nulls))),
            true,
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn kept(bytes: &[u8], comparisons: Comparisons) -> Vec<usize> {
    let rows = rows();
    let predicate = Predicate::from_arrow_expression(bytes, &rows.schema(), comparisons).unwrap();
    let mask = predicate.evaluate(&rows).unwrap();
    (0..4).filter(|row| mask.iter().nth(*row) == Some(Some(true))).collect()
}

#[test]
fn test_expressions_of_pyarrow_keep_the_right_rows() {
    for (name, bytes, expected) in CASES {
        assert_eq!(kept(bytes, Comparisons::Sql), *expected, "{name}");
    }
}

#[test]
fn test_what_is_not_a_number_compares_as_asked_for() {
    let branches = include_bytes!("../../../../fuzz/corpus/arrow_expression/branches");
    assert_eq!(kept(branches, Comparisons::Sql), [2]);
    assert!(kept(branches, Comparisons::Arrow).is_empty());
}

#[test]
fn test_the_text_of_an_expression_is_sql_that_keeps_the_same_rows() {
    let rows = rows();
    for (name, bytes, expected) in CASES {
        let predicate = Predicate::from_arrow_expression(bytes, &rows.schema(), Comparisons::Sql).unwrap();
        let again = Predicate::parse_sql(&predicate.to_string(), &rows.schema());
        let again = again.unwrap_or_else(|error| panic!("{name}: {predicate}: {error}"));
        let mask = again.evaluate(&rows).unwrap();
        let found: Vec<usize> = (0..4).filter(|row| mask.iter().nth(*row) == Some(Some(true))).collect();
        assert_eq!(found, *expected, "{name}: {predicate}");
    }
}

#[test]
fn test_bytes_that_are_no_expression_are_refused_with_what_was_expected() {
    let schema = rows().schema();
    for bytes in [&b""[..], b"ARROW1", b"ARROW1\0\0\xff\xff\xff\x7fARROW1"] {
        let error = Predicate::from_arrow_expression(bytes, &schema, Comparisons::Sql).unwrap_err();
        assert!(
            error.to_string().starts_with("expected a serialized Arrow expression"),
            "{error}"
        );
    }
}
