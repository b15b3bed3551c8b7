//! Column expressions by the values that they compute.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, DictionaryArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use std::sync::Arc;

use super::rows::batch;
use crate::{ExprError, Expression, Predicate};

fn parse(text: &str) -> Expression {
    Expression::parse_sql(text, &batch().schema()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn test_an_expression_computes_a_value_per_row() {
    let expression = parse("i * 2 + 1");
    assert_eq!(expression.data_type(), &DataType::Int64);
    assert_eq!(expression.columns(), ["i"]);
    assert_eq!(expression.to_string(), "i * 2 + 1");
    let values = expression.evaluate(&batch()).unwrap();
    assert_eq!(
        values.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(),
        [Some(3), Some(5), None, Some(9)]
    );
}

#[test]
fn test_the_type_is_known_before_it_runs() {
    for (text, data_type) in [
        ("upper(s)", DataType::Utf8),
        ("i > 1", DataType::Boolean),
        ("i", DataType::Int64),
        ("st.x", DataType::Int64),
        ("st.y.Z || '!'", DataType::Utf8),
        ("my col", DataType::Int32),
        ("g / 2", DataType::Float64),
        ("cast(i as int)", DataType::Int32),
        ("l[1]", DataType::Int64),
        ("case when i > 1 then 'big' else 'small' end", DataType::Utf8),
        ("'constant'", DataType::Utf8),
    ] {
        let expression = parse(text);
        assert_eq!(expression.data_type(), &data_type, "{text}");
        let values = expression.evaluate(&batch()).unwrap();
        assert_eq!((values.data_type(), values.len()), (&data_type, 4), "{text}");
    }
}

#[test]
fn test_a_constant_fills_a_batch_without_columns() {
    let rows = batch().project(&[]).unwrap();
    let values = parse("1.5").evaluate(&rows).unwrap();
    assert_eq!(values.as_primitive::<Float64Type>().values(), &[1.5; 4]);
}

#[test]
fn test_an_expression_that_does_not_parse_is_an_invalid_argument() {
    let error = Expression::parse_sql("i +", &batch().schema()).unwrap_err();
    let text = "cannot parse expression \"i +\": expected: an expression, found: EOF";
    assert_eq!(error, ExprError::InvalidArgument(text.to_owned()));
}

#[test]
fn test_a_batch_may_hold_a_column_as_a_dictionary() {
    let schema = Schema::new(vec![Field::new("s", DataType::Utf8, false)]);
    let predicate = Predicate::parse_sql("s = 'a'", &schema).unwrap();
    let values: DictionaryArray<arrow_array::types::Int32Type> = vec!["a", "b", "a"].into_iter().collect();
    let rows = RecordBatch::try_from_iter([("s", Arc::new(values) as Arc<dyn Array>)]).unwrap();
    assert_eq!(predicate.evaluate(&rows).unwrap().true_count(), 2);
}

#[test]
fn test_nulls_in_a_column_that_promised_none_are_seen() {
    let schema = Schema::new(vec![Field::new("s", DataType::Utf8, false)]);
    let predicate = Predicate::parse_sql("s is null", &schema).unwrap();
    let rows = RecordBatch::try_from_iter([(
        "s",
        Arc::new(StringArray::from(vec![None, Some("a")])) as Arc<dyn Array>,
    )]);
    assert_eq!(predicate.evaluate(&rows.unwrap()).unwrap().true_count(), 1);
}

#[test]
fn test_a_predicate_tells_which_fields_of_structs_it_reads() {
    let int = |name: &str| Field::new(name, DataType::Int64, true);
    let side = |name: &str| {
        Field::new_struct(
            name,
            vec![int("id"), int("v"), Field::new_struct("st", vec![int("a")], true)],
            true,
        )
    };
    let schema = Schema::new(vec![side("source"), side("target"), int("x")]);
    let paths = |text: &str| Predicate::parse_sql(text, &schema).unwrap().paths().unwrap();
    let field = |column: &str, field: &str| (column.to_owned(), Some(field.to_owned()));
    assert_eq!(
        paths("source.v > target.id AND (source.v = 1 OR target.st.a < x)"),
        [
            field("source", "v"),
            field("target", "id"),
            field("target", "st"),
            ("x".to_owned(), None)
        ]
    );
    assert_eq!(paths("source IS NOT NULL"), [("source".to_owned(), None)]);
}
