//! Filters that are refused, and their error messages.

use super::rows::batch;
use crate::{ExprError, Predicate};

fn message(filter: &str) -> String {
    match Predicate::parse_sql(filter, &batch().schema()) {
        Err(ExprError::InvalidArgument(message)) => message,
        other => panic!("{filter}: expected an invalid argument, found {other:?}"),
    }
}

#[test]
fn test_a_text_that_does_not_parse_is_shown_with_the_place() {
    for (filter, expected) in [
        (
            "i >",
            "cannot parse filter \"i >\": expected: an expression, found: EOF",
        ),
        (
            "i > 1 garbage",
            "cannot parse filter \"i > 1 garbage\": expected: end of text, found: garbage at line 1, column 7",
        ),
        (
            "i > 1; drop",
            "cannot parse filter \"i > 1; drop\": expected: end of text, found: ; at line 1, column 6",
        ),
        (
            "s = 'a",
            "cannot parse filter \"s = 'a\": unterminated string literal at line 1, column 5",
        ),
        (
            "i in ()",
            "cannot parse filter \"i in ()\": expected: an expression, found: ) at line 1, column 7",
        ),
        ("", "expected a filter, found an empty string"),
        ("  ", "expected a filter, found an empty string"),
    ] {
        assert_eq!(message(filter), expected);
    }
}

#[test]
fn test_an_unknown_column_is_named_with_those_there_are() {
    let found = message("st.nope = 1");
    assert_eq!(
        found,
        "expected a field in st, found nope: there are x, y, in filter \"st.nope = 1\""
    );
    let found = message("dicc = 'a'");
    assert!(
        found.starts_with("expected a column, found dicc: there are dict, "),
        "{found}"
    );
    assert!(message("i.x = 1").starts_with("expected a struct to take field x from, found column i of type Int64"));
}

#[test]
fn test_a_filter_that_is_no_boolean_is_refused() {
    for filter in ["i", "s", "i + 1", "1", "'true'", "null"] {
        let found = message(filter);
        assert!(
            found.starts_with("expected a filter that is true or false for each row, found "),
            "{found}"
        );
    }
}

#[test]
fn test_more_than_one_row_is_refused() {
    assert!(message("sum(i) = 1").starts_with("expected an expression over one row, found aggregate sum"));
    assert!(message("row_number() over () = 1").starts_with("expected an expression over one row, found window"));
    for filter in [
        "i in (select 1)",
        "exists (select 1)",
        "i = (select 1)",
        "i = any(select 1)",
    ] {
        assert!(
            message(filter).starts_with("expected an expression over one row, found subquery"),
            "{filter}"
        );
    }
}

#[test]
fn test_a_literal_that_does_not_fit_is_named() {
    for (filter, expected) in [
        (
            "i > 'abc'",
            "expected a literal to compare with i of type Int64, found 'abc'",
        ),
        (
            "ts > 'abc'",
            "expected a literal to compare with ts of type Timestamp(µs), found 'abc'",
        ),
        ("s > 5", "expected a literal to compare with s of type Utf8, found 5"),
        (
            "ts = 5",
            "expected a literal to compare with ts of type Timestamp(µs), found 5",
        ),
        (
            "b = 'maybe'",
            "expected a literal to compare with b of type Boolean, found 'maybe'",
        ),
    ] {
        let found = message(filter);
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn test_placeholders_variables_and_unknown_functions_are_refused() {
    for filter in [
        "$1 = i",
        "? = i",
        "@x = i",
        "nosuch(i) = 1",
        "st.x.y = 1",
        "i[1] = 1",
        "b = 1",
        "l > 1",
    ] {
        let found = message(filter);
        assert!(found.contains(filter), "{found}");
    }
    assert!(message("nosuch(i) = 1").contains("nosuch"));
}

#[test]
fn test_a_cast_that_fails_while_running_is_an_error() {
    let batch = batch();
    let predicate = Predicate::parse_sql("cast(s as int) = 1", &batch.schema()).unwrap();
    let error = predicate.evaluate(&batch).unwrap_err().to_string();
    assert!(
        error.contains("Cannot cast string 'a'") && error.contains("in filter"),
        "{error}"
    );
}

#[test]
fn test_a_batch_without_the_columns_is_refused() {
    let batch = batch();
    let predicate = Predicate::parse_sql("i > 1", &batch.schema()).unwrap();
    let error = predicate.evaluate(&batch.project(&[2]).unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected column i in the batch, found only s, in filter \"i > 1\""
    );
}

#[test]
fn test_a_column_in_double_quotes_gets_a_hint() {
    let found = message("\"my col\" > 2");
    assert!(
        found.ends_with("(\"my col\" is a string: write `my col` for the column)"),
        "{found}"
    );
}
