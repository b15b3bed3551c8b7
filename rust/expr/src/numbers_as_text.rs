//! Numbers that are compared with text: as text, where the caller's SQL has them so.
//!
//! `s > 5` is `s > '5'` to delta-rs, so that `'10'` is not above it. Lance refuses it, and so does this crate unless it is asked for.

use arrow_schema::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, DataFusionError};
use datafusion_expr::expr::{Between, InList};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable};

use crate::coerce::is_comparison;

/// What a number means in a comparison with text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numbers {
    /// Nothing: the comparison is refused.
    #[default]
    Refused,
    /// Its decimal text.
    AsText,
}

/// Spells the literal numbers that are compared with text.
pub(crate) fn spelled(expr: Expr, schema: &DFSchema) -> Result<Expr, DataFusionError> {
    let made = expr.transform_up(|node| {
        Ok(match node {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
                let (left, right) = (text_beside(*left, &right, schema), right);
                let right = text_beside(*right, &left, schema);
                Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
            }
            Expr::Between(Between {
                expr,
                negated,
                low,
                high,
            }) => {
                let low = text_beside(*low, &expr, schema);
                let high = text_beside(*high, &expr, schema);
                Transformed::yes(Expr::Between(Between::new(
                    expr,
                    negated,
                    Box::new(low),
                    Box::new(high),
                )))
            }
            Expr::InList(InList { expr, list, negated }) => {
                let list = list.into_iter().map(|item| text_beside(item, &expr, schema)).collect();
                Transformed::yes(Expr::InList(InList::new(expr, list, negated)))
            }
            other => Transformed::no(other),
        })
    });
    made.map(|made| made.data)
}

/// A literal number as text, if `other` is text and no literal.
fn text_beside(literal: Expr, other: &Expr, schema: &DFSchema) -> Expr {
    let is_text = |found: &DataType| matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let beside_text = !matches!(other, Expr::Literal(..)) && other.get_type(schema).is_ok_and(|found| is_text(&found));
    match literal {
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

    use arrow_array::{Int64Array, RecordBatch, StringArray};

    use super::*;
    use crate::Predicate;

    fn kept(filter: &str) -> Vec<bool> {
        let batch = RecordBatch::try_from_iter([
            ("s", Arc::new(StringArray::from(vec!["1", "10", "b"])) as _),
            ("i", Arc::new(Int64Array::from(vec![1, 10, 3])) as _),
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
    fn test_without_being_asked_for_it_is_refused() {
        let schema = arrow_schema::Schema::new(vec![arrow_schema::Field::new("s", DataType::Utf8, true)]);
        assert!(Predicate::parse_sql("s > 5", &schema).is_err());
    }
}
