//! Types: a literal takes the type of what it is compared with, then DataFusion's rules apply.
//!
//! DataFusion alone would widen the column: a float32 column compared with `1.2` as float64 matches nothing, and a number compared with
//! a string is compared as text.

use arrow_schema::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::expr::{Between, InList};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use crate::error::{ExprError, Result};

/// Fits the literals of all comparisons of `expr`.
pub(crate) fn fit_literals(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let mut refused = None;
    let fitted = expr.transform_up(|node| {
        Ok(match fit_comparison(node, schema) {
            Ok(node) => Transformed::yes(node),
            Err((node, error)) => {
                refused.get_or_insert(error);
                Transformed::no(node)
            }
        })
    });
    match refused {
        Some(error) => Err(error),
        None => fitted
            .map(|fitted| fitted.data)
            .map_err(|error| ExprError::from_datafusion("cannot type", &error)),
    }
}

fn fit_comparison(node: Expr, schema: &DFSchema) -> std::result::Result<Expr, (Expr, ExprError)> {
    match &node {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
            let fitted = fit(right, left, schema).and_then(|right| Ok((fit(left, &right, schema)?, right)));
            match fitted {
                Ok((left, right)) => Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), *op, Box::new(right)))),
                Err(error) => Err((node, error)),
            }
        }
        Expr::Between(Between {
            expr,
            negated,
            low,
            high,
        }) => {
            let fitted = fit(low, expr, schema).and_then(|low| Ok((low, fit(high, expr, schema)?)));
            match fitted {
                Ok((low, high)) => Ok(Expr::Between(Between::new(
                    expr.clone(),
                    *negated,
                    Box::new(low),
                    Box::new(high),
                ))),
                Err(error) => Err((node, error)),
            }
        }
        Expr::InList(InList { expr, list, negated }) => {
            let fitted: Result<Vec<Expr>> = list.iter().map(|item| fit(item, expr, schema)).collect();
            match fitted {
                Ok(list) => Ok(Expr::InList(InList::new(expr.clone(), list, *negated))),
                Err(error) => Err((node, error)),
            }
        }
        _ => Ok(node),
    }
}

fn is_comparison(op: Operator) -> bool {
    matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// `side` as it must be to be compared with `other`; unchanged unless it is a literal.
fn fit(side: &Expr, other: &Expr, schema: &DFSchema) -> Result<Expr> {
    let Expr::Literal(value, metadata) = side else {
        return Ok(side.clone());
    };
    if matches!(other, Expr::Literal(..)) || value.is_null() {
        return Ok(side.clone());
    }
    let Ok(data_type) = other.get_type(schema) else {
        return Ok(side.clone());
    };
    let wanted = match &data_type {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    match fit_value(value, wanted) {
        Fit::Keep => Ok(side.clone()),
        Fit::Replace(value) => Ok(Expr::Literal(value, metadata.clone())),
        Fit::Refuse => Err(ExprError::invalid(format!(
            "expected a literal to compare with {other} of type {wanted}, found {}",
            crate::display::literal(value)
        ))),
    }
}

/// What becomes of a literal.
enum Fit {
    Keep,
    Replace(ScalarValue),
    Refuse,
}

fn fit_value(value: &ScalarValue, wanted: &DataType) -> Fit {
    let text = value.try_as_str().flatten();
    let is_text = matches!(wanted, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match (text, value) {
        (Some(_), _) if is_text || wanted.is_binary() || wanted.is_null() => Fit::Keep,
        (Some(text), _) if wanted.is_primitive() || *wanted == DataType::Boolean => {
            match ScalarValue::try_from_string(text.trim().to_owned(), wanted) {
                Ok(value) if !value.is_null() => Fit::Replace(value),
                _ => Fit::Refuse,
            }
        }
        (Some(_), _) => Fit::Refuse,
        (None, _) if is_text && value.data_type().is_numeric() => Fit::Refuse,
        (None, _) if wanted.is_temporal() && value.data_type().is_numeric() => Fit::Refuse,
        (None, ScalarValue::Float64(Some(number))) if wanted.is_decimal() => exact_decimal(*number),
        (None, ScalarValue::Float64(Some(number))) if matches!(wanted, DataType::Float16 | DataType::Float32) => {
            match value.cast_to(wanted) {
                // A number past the narrow type's end stays as it is: infinity would be another number.
                Ok(narrow) if !number.is_finite() || is_finite(&narrow) => Fit::Replace(narrow),
                _ => Fit::Keep,
            }
        }
        (None, ScalarValue::Int64(Some(_)) | ScalarValue::UInt64(Some(_))) if wanted.is_floating() => {
            value.cast_to(wanted).map_or(Fit::Keep, Fit::Replace)
        }
        _ => Fit::Keep,
    }
}

fn is_finite(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float16(Some(number)) => number.is_finite(),
        ScalarValue::Float32(Some(number)) => number.is_finite(),
        _ => true,
    }
}

/// The decimal number that was written where the parser made a float of it: the shortest text of a float is what was written.
fn exact_decimal(number: f64) -> Fit {
    const DIGITS: u8 = 38;
    let text = format!("{number}");
    let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    match i8::try_from(scale) {
        Ok(scale) if text.len() <= usize::from(DIGITS) => {
            ScalarValue::try_from_string(text, &DataType::Decimal128(DIGITS, scale)).map_or(Fit::Keep, Fit::Replace)
        }
        _ => Fit::Keep,
    }
}
