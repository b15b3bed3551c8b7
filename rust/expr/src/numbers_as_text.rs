//! Numbers that are compared with text, as text, and with booleans, as booleans, where the caller's SQL has them so.
//!
//! `s > 5` is `s > '5'` to delta-rs, so that `'10'` is not above it, and `b = 1` is `b = true`. Lance refuses both, and so does this crate unless
//! it is asked for.

use arrow_schema::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, DataFusionError, ScalarValue};
use datafusion_expr::expr::{Between, InList};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable};

use crate::coerce::is_comparison;
use crate::times::lossless;

/// What a number means in a comparison with text, or with a boolean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numbers {
    /// Nothing: the comparison is refused.
    #[default]
    Refused,
    /// Its decimal text; 0 is false, and 1 true.
    AsText,
    /// Nothing. Beside a column of float32, a fraction stays the double that it is, as in Spark: 0.1 is no float32.
    AsDoubles,
}

/// Spells the literal numbers that are compared with text.
pub(crate) fn spelled(expr: Expr, schema: &DFSchema) -> Result<Expr, DataFusionError> {
    let made = expr.transform_up(|node| {
        Ok(match node {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
                let (left, right) = (fitted_beside(*left, &right, schema), right);
                let right = fitted_beside(*right, &left, schema);
                Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
            }
            Expr::Between(Between {
                expr,
                negated,
                low,
                high,
            }) => {
                let low = fitted_beside(*low, &expr, schema);
                let high = fitted_beside(*high, &expr, schema);
                Transformed::yes(Expr::Between(Between::new(
                    expr,
                    negated,
                    Box::new(low),
                    Box::new(high),
                )))
            }
            Expr::InList(InList { expr, list, negated }) => {
                let list = list
                    .into_iter()
                    .map(|item| fitted_beside(item, &expr, schema))
                    .collect();
                Transformed::yes(Expr::InList(InList::new(expr, list, negated)))
            }
            other => Transformed::no(other),
        })
    });
    made.map(|made| made.data)
}

/// A literal number as text or as a boolean, if `other` is one and no literal.
fn fitted_beside(literal: Expr, other: &Expr, schema: &DFSchema) -> Expr {
    let is_text = |found: &DataType| matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let found = other
        .get_type(schema)
        .ok()
        .filter(|_| !matches!(other, Expr::Literal(..)));
    let beside_text = found.as_ref().is_some_and(is_text);
    match literal {
        Expr::Literal(value, metadata) if found == Some(DataType::Boolean) && value.data_type().is_numeric() => {
            match lossless(&value, &DataType::Int64) {
                Some(ScalarValue::Int64(Some(number @ (0 | 1)))) => {
                    Expr::Literal(ScalarValue::Boolean(Some(number == 1)), metadata)
                }
                _ => Expr::Literal(value, metadata),
            }
        }
        Expr::Literal(value, metadata) if beside_text && value.data_type().is_numeric() => {
            match value.cast_to(&DataType::Utf8) {
                Ok(text) => Expr::Literal(text, metadata),
                Err(_) => Expr::Literal(value, metadata),
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BooleanArray, Int64Array, RecordBatch, StringArray};

    use super::*;
    use crate::Predicate;

    fn kept(filter: &str) -> Vec<bool> {
        let batch = RecordBatch::try_from_iter([
            ("s", Arc::new(StringArray::from(vec!["1", "10", "b"])) as _),
            ("i", Arc::new(Int64Array::from(vec![1, 10, 3])) as _),
            ("b", Arc::new(BooleanArray::from(vec![true, false, true])) as _),
        ])
        .unwrap();
        let predicate = Predicate::parse_sql_with(filter, &batch.schema(), Numbers::AsText).unwrap();
        let found = predicate.evaluate(&batch).unwrap();
        found.iter().map(|row| row == Some(true)).collect()
    }

    #[test]
    fn test_numbers_beside_text_are_text() {
        assert_eq!(kept("s = 10"), [false, true, false]);
        assert_eq!(kept("10 = s"), [false, true, false]);
        assert_eq!(kept("s > 5"), [false, false, true]);
        assert_eq!(kept("s > 0.5"), [true, true, true]);
        assert_eq!(kept("s in (1, 'b')"), [true, false, true]);
        assert_eq!(kept("s between 1 and 5"), [true, true, false]);
        assert_eq!(kept("i > 5"), [false, true, false]);
        assert_eq!(kept("s <> -1 and i = '1'"), [true, false, false]);
    }

    #[test]
    fn test_numbers_beside_booleans_are_booleans() {
        for filter in [
            "b = 1",
            "1 = b",
            "b <> 0",
            "b > 0",
            "b in (1)",
            "b = 1.0",
            "b between 1 and 1",
        ] {
            assert_eq!(kept(filter), [true, false, true], "{filter}");
        }
        let schema = arrow_schema::Schema::new(vec![arrow_schema::Field::new("b", DataType::Boolean, true)]);
        for filter in ["b = 2", "b = 0.5", "b = -1"] {
            assert!(
                Predicate::parse_sql_with(filter, &schema, Numbers::AsText).is_err(),
                "{filter}"
            );
        }
    }

    #[test]
    fn test_without_being_asked_for_it_is_refused() {
        let schema = arrow_schema::Schema::new(vec![arrow_schema::Field::new("s", DataType::Utf8, true)]);
        assert!(Predicate::parse_sql("s > 5", &schema).is_err());
    }
}
