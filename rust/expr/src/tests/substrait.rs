//! Substrait filters by the rows that they keep: those that pyarrow writes, and messages that it does not.

use prost::Message;

use super::rows::{batch, kept};
use crate::substrait::messages as proto;
use crate::substrait::messages::{ArgumentKind, Declared, LiteralType, Referred, Rex};
use crate::{ExprError, Predicate};

/// A line each: the expression in Python, the values of column `n` in the rows it keeps, and the bytes that pyarrow makes of it.
/// Nulls and not-a-numbers are compared as in SQL, not as in pyarrow.
const PYARROW: &str = include_str!("pyarrow.tsv");

fn cases() -> impl Iterator<Item = (&'static str, Vec<i32>, Vec<u8>)> {
    PYARROW.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let parts: Vec<&str> = line.split('\t').collect();
        let rows = parts[1]
            .split(',')
            .filter(|row| !row.is_empty())
            .map(|row| row.parse().unwrap())
            .collect();
        let bytes = (0..parts[2].len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&parts[2][at..at + 2], 16).unwrap());
        (parts[0], rows, bytes.collect())
    })
}

#[test]
fn test_filters_of_pyarrow_keep_the_right_rows() {
    let schema = batch().schema();
    let mut wrong = Vec::new();
    for (filter, rows, bytes) in cases() {
        match Predicate::from_substrait(&bytes, &schema) {
            Ok(predicate) if kept(&predicate) == rows => {}
            Ok(predicate) => wrong.push(format!(
                "{filter}: {predicate} kept {:?}, expected {rows:?}",
                kept(&predicate)
            )),
            Err(error) => wrong.push(format!("{filter}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn test_the_text_of_a_substrait_filter_is_sql_that_keeps_the_same_rows() {
    let schema = batch().schema();
    for (filter, rows, bytes) in cases() {
        let text = Predicate::from_substrait(&bytes, &schema).unwrap().to_string();
        let again = Predicate::parse_sql(&text, &schema).unwrap_or_else(|error| panic!("{filter}: {text}: {error}"));
        assert_eq!(kept(&again), rows, "{filter}: {text}");
    }
}

#[test]
fn test_any_prefix_of_a_message_is_a_value_or_an_error() {
    let schema = batch().schema();
    for (_, _, bytes) in cases().step_by(7) {
        for end in 0..bytes.len() {
            if let Err(error) = Predicate::from_substrait(&bytes[..end], &schema) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

fn literal(value: i64) -> proto::Expression {
    let literal = proto::Literal {
        literal: Some(LiteralType::I64(value)),
    };
    proto::Expression {
        rex: Some(Rex::Literal(literal)),
    }
}

fn call(function: u32, arguments: &[proto::Expression]) -> proto::Expression {
    let value = |argument: &proto::Expression| proto::Argument {
        kind: Some(ArgumentKind::Value(argument.encode_to_vec().into())),
    };
    let function = proto::ScalarFunction {
        function_reference: function,
        arguments: arguments.iter().map(value).collect(),
        ..Default::default()
    };
    proto::Expression {
        rex: Some(Rex::ScalarFunction(function)),
    }
}

/// A message that calls functions 0, 1, ... by these names.
fn message(functions: &[&str], expression: proto::Expression) -> Vec<u8> {
    let declare = |(anchor, name): (usize, &&str)| proto::ExtensionDeclaration {
        declared: Some(Declared::Function(proto::Anchor {
            anchor: anchor as u32,
            name: (*name).to_owned(),
        })),
    };
    proto::ExtendedExpression {
        extensions: functions.iter().enumerate().map(declare).collect(),
        referred_expr: vec![proto::ExpressionReference {
            referred: Some(Referred::Expression(expression)),
        }],
        base_schema: None,
    }
    .encode_to_vec()
}

#[test]
fn test_a_long_chain_does_not_overflow_the_stack() {
    let schema = batch().schema();
    let equal = |value| call(0, &[literal(value), literal(1)]);
    let chain = (0..500).fold(equal(2), |chain, value| call(1, &[chain, equal(value)]));
    let predicate = Predicate::from_substrait(&message(&["equal:any_any", "or:bool"], chain), &schema).unwrap();
    assert_eq!(kept(&predicate), [1, 2, 3, 4]);
}

#[test]
fn test_a_deep_expression_is_refused() {
    let schema = batch().schema();
    let deep = (0..500).fold(literal(1), |inner, _| call(0, &[inner]));
    let error = Predicate::from_substrait(&message(&["negate"], deep), &schema).unwrap_err();
    assert_eq!(error.to_string(), "expected at most 100 levels of nesting, found more");
}

#[test]
fn test_what_a_message_lacks_is_named() {
    let schema = batch().schema();
    let error = |bytes: &[u8]| Predicate::from_substrait(bytes, &schema).unwrap_err().to_string();
    assert_eq!(error(b""), "expected one Substrait expression, found 0");
    assert!(error(b"\xff\xff").starts_with("expected a Substrait extended expression, found other bytes"));
    let undeclared = message(&[], call(7, &[literal(1)]));
    assert_eq!(
        error(&undeclared),
        "expected the Substrait function 7 to be declared, found no declaration"
    );
    let number = message(&[], literal(1));
    assert_eq!(
        error(&number),
        "expected a filter that is true or false for each row, found 1 of type Int64, which does not return a boolean"
    );
    let few = message(&["equal"], call(0, &[literal(1)]));
    assert_eq!(error(&few), "expected 2 arguments of Substrait function equal, found 1");
}

#[test]
fn test_an_unknown_function_is_unsupported() {
    let unknown = message(&["frobnicate:any"], call(0, &[literal(1)]));
    let error = Predicate::from_substrait(&unknown, &batch().schema()).unwrap_err();
    let text = "expected a function that esker knows, found Substrait function frobnicate";
    assert_eq!(error, ExprError::Unsupported(text.to_owned()));
}

#[test]
fn test_a_column_that_is_not_in_the_table_is_named() {
    let (_, _, bytes) = cases().find(|(filter, ..)| *filter == "F(\"i\")>1").unwrap();
    let schema = arrow_schema::Schema::new(vec![arrow_schema::Field::new("x", arrow_schema::DataType::Int64, true)]);
    let error = Predicate::from_substrait(&bytes, &schema).unwrap_err();
    assert_eq!(error.to_string(), "expected a column, found i: there are x");
}
