//! Type coercion: a literal takes the type of the expression that it is compared with, then DataFusion's rules apply.
//!
//! DataFusion alone would widen the column: a float32 column compared with `1.2` as float64 matches nothing, and a number compared with
//! a string is compared as text.

use arrow_schema::{DataType, FieldRef, TimeUnit};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, DataFusionError, ScalarValue};
use datafusion_expr::expr::{Between, Cast, InList};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use crate::display;
use crate::error::{ExprError, Result};
use crate::functions::positive_zero_of;
use crate::lengths::fit_lengths;
use crate::times::{fit_times, folded, is_time, lossless};

/// Converts the literals in all comparisons of `expr` to the type of the other side.
pub(crate) fn fit_literals(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let mut refused = None;
    let fitted = expr.transform_up(|node| match fit_node(node, schema) {
        Ok(node) => Ok(Transformed::yes(node)),
        Err(error) => {
            refused = Some(error);
            Err(DataFusionError::Plan(String::new()))
        }
    });
    fitted
        .map(|fitted| fitted.data)
        .map_err(|error| refused.unwrap_or_else(|| ExprError::from_datafusion("cannot type", &error)))
}

fn fit_node(node: Expr, schema: &DFSchema) -> Result<Expr> {
    match node {
        // `date '2021-01-01'` parses as a cast of a literal.
        Expr::Cast(cast) => Ok(folded(&cast).unwrap_or(Expr::Cast(cast))),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let (left, right) = match matches!(*left, Expr::Literal(..)) {
                true => {
                    let (right, [left]) = fit(*right, [*left], schema)?;
                    (left, right)
                }
                false => {
                    let (left, [right]) = fit(*left, [*right], schema)?;
                    (left, right)
                }
            };
            Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
        }
        Expr::Between(Between {
            expr,
            negated,
            low,
            high,
        }) => {
            let (expr, [low, high]) = fit(*expr, [*low, *high], schema)?;
            Ok(Expr::Between(Between::new(
                Box::new(expr),
                negated,
                Box::new(low),
                Box::new(high),
            )))
        }
        Expr::InList(InList { expr, list, negated }) => {
            let (expr, list) = fit(*expr, list, schema)?;
            Ok(in_list(expr, list, negated, schema))
        }
        other => Ok(other),
    }
}

/// A column, or a field within one, and a literal in one sum, difference, product, quotient or remainder: the literal takes the column's type,
/// as in Lance, if that holds it. DataFusion alone would make `a + 1` an int64 of any smaller integer, and a decimal of an uint64.
///
/// Only of an expression as a whole, whose type a new column gets: within a larger one, and in what is assigned to a column of another type, the
/// wider type keeps results that do not fit.
pub(crate) fn fit_arithmetic(expr: Expr, schema: &DFSchema) -> Expr {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return expr;
    };
    let is_field = |side: &Expr| match side {
        Expr::Column(_) => true,
        Expr::ScalarFunction(call) => call.name() == "get_field",
        _ => false,
    };
    let (left, right) = match (is_arithmetic(op), is_field(&left), is_field(&right)) {
        (true, true, false) => {
            let right = as_type_of(&left, op, *right, schema);
            (left, Box::new(right))
        }
        // What is below zero has no place in an unsigned type.
        (true, false, true) if op != Operator::Minus || !is_unsigned(&right, schema) => {
            let left = as_type_of(&right, op, *left, schema);
            (Box::new(left), right)
        }
        _ => (left, right),
    };
    Expr::BinaryExpr(BinaryExpr::new(left, op, right))
}

fn is_arithmetic(op: Operator) -> bool {
    matches!(
        op,
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo
    )
}

fn is_unsigned(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|found| found.is_unsigned_integer())
}

/// A literal in the type of a column of numbers; what else it is, or what the type does not hold, stays as it is.
fn as_type_of(column: &Expr, op: Operator, literal: Expr, schema: &DFSchema) -> Expr {
    let Ok(wanted) = column.get_type(schema) else {
        return literal;
    };
    let value = match &literal {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Negative(inner) => match inner.as_ref() {
            Expr::Literal(value, _) => value.arithmetic_negate().ok(),
            _ => None,
        },
        _ => None,
    };
    let value = value.filter(|value| !value.is_null() && value.data_type().is_numeric());
    let fitted = match value {
        // `2.0` makes a fraction of an integer's quotient.
        Some(value) if wanted.is_integer() && value.data_type().is_integer() => lossless(&value, &wanted),
        Some(value) if value.data_type().is_integer() && holds_results(&wanted, op) => lossless(&value, &wanted),
        Some(value) if wanted.is_floating() => value.cast_to(&wanted).ok().filter(is_finite),
        _ => None,
    };
    fitted.map_or(literal, |value| Expr::Literal(value, None))
}

/// Whether a decimal's type may be that of both sides: that of a product or a quotient must hold the digits of both.
fn holds_results(wanted: &DataType, op: Operator) -> bool {
    match wanted {
        DataType::Decimal128(precision, _) => matches!(op, Operator::Plus | Operator::Minus) || *precision <= 18,
        DataType::Decimal256(precision, _) => matches!(op, Operator::Plus | Operator::Minus) || *precision <= 37,
        _ => false,
    }
}

pub(crate) fn is_comparison(op: Operator) -> bool {
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

/// IN without the values that an integer can never equal: fractions, and numbers beyond the type's range.
fn in_list(expr: Expr, list: Vec<Expr>, negated: bool, schema: &DFSchema) -> Expr {
    let found = expr.get_type(schema);
    let integer = found
        .ok()
        .filter(|found| found.is_integer() && !matches!(expr, Expr::Literal(..)));
    let is_empty = list.is_empty();
    let list: Vec<Expr> = list
        .into_iter()
        .filter_map(|item| match (item, &integer) {
            (Expr::Literal(value, metadata), Some(wanted)) if value.data_type().is_numeric() && !value.is_null() => {
                lossless(&value, wanted).map(|value| Expr::Literal(value, metadata))
            }
            (Expr::Literal(value, metadata), _) => Some(Expr::Literal(positive_zero_of(value), metadata)),
            (other, _) => Some(other),
        })
        .collect();
    if list.is_empty() && !is_empty {
        // No value is left: false (for NOT IN true), and null for a null.
        let itself = Box::new(expr.clone());
        let op = if negated { Operator::Eq } else { Operator::NotEq };
        return Expr::BinaryExpr(BinaryExpr::new(itself, op, Box::new(expr)));
    }
    let expr = match expr {
        Expr::Literal(value, metadata) => Expr::Literal(positive_zero_of(value), metadata),
        other => other,
    };
    Expr::InList(InList::new(Box::new(expr), list, negated))
}

/// Brings the sides of a comparison to one type. Only literals change, unless one side is a time that the other's type cannot hold.
fn fit<Values>(expr: Expr, values: Values, schema: &DFSchema) -> Result<(Expr, Values)>
where
    Values: AsMut<[Expr]> + AsRef<[Expr]>,
{
    let mut values = values;
    let mut expr = expr;
    if is_json(&expr, schema) && values.as_ref().iter().any(is_text) {
        return Err(ExprError::invalid(format!(
            "expected a JSON column within a json_ function, such as json_extract({0}, '$') = '1', found {0} compared with a text",
            display::sql(&expr)
        )));
    }
    let all = std::iter::once(&mut expr).chain(values.as_mut().iter_mut());
    fit_lengths(&mut all.collect::<Vec<_>>(), schema)?;
    if let Ok(data_type) = expr.get_type(schema) {
        expr = days_as_times(expr, &data_type, values.as_mut(), schema);
        expr = decimals_as_floats(expr, &data_type, values.as_mut(), schema);
    }
    if expr.get_type(schema).is_ok_and(|found| is_time(&found)) {
        let mut sides = vec![expr];
        sides.extend(values.as_mut().iter_mut().map(std::mem::take));
        fit_times(&mut sides, schema);
        let mut sides = sides.into_iter();
        expr = sides.next().unwrap_or_default();
        for (value, side) in values.as_mut().iter_mut().zip(sides) {
            *value = side;
        }
    }
    let Ok(data_type) = expr.get_type(schema) else {
        return Ok((expr, values));
    };
    if matches!(expr, Expr::Literal(..)) {
        return Ok((expr, values));
    }
    let wanted = match &data_type {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    for side in values.as_mut() {
        let Expr::Literal(value, metadata) = &*side else {
            continue;
        };
        match fit_value(value, wanted) {
            Fit::Keep => {}
            Fit::Replace(value) => *side = Expr::Literal(value, metadata.clone()),
            Fit::Refuse => {
                return Err(ExprError::invalid(format!(
                    "expected a literal to compare with {} of type {wanted}, found {}",
                    display::sql(&expr),
                    display::literal(value)
                )));
            }
        }
    }
    Ok((expr, values))
}

/// Whether it is a JSON column, or such a field of a struct: JSONB, which equals no text.
fn is_json(expr: &Expr, schema: &DFSchema) -> bool {
    let named = |(_, field): (_, FieldRef)| field.extension_type_name() == Some("lance.json");
    !matches!(expr, Expr::Literal(..)) && expr.to_field(schema).is_ok_and(named)
}

fn is_text(value: &Expr) -> bool {
    let Expr::Literal(value, _) = value else { return false };
    value.try_as_str().flatten().is_some()
}

/// Dates that are compared with timestamps of a zone become midnights of that zone. Arrow's cast would make them midnights of UTC.
fn days_as_times(expr: Expr, data_type: &DataType, values: &mut [Expr], schema: &DFSchema) -> Expr {
    let is_zoned = |other: &DataType| matches!(other, DataType::Timestamp(_, Some(_)));
    let is_day = |other: &DataType| matches!(other, DataType::Date32 | DataType::Date64);
    let midnight = |day: Expr| {
        let cast = Cast::new(Box::new(day), DataType::Timestamp(TimeUnit::Microsecond, None));
        folded(&cast).unwrap_or(Expr::Cast(cast))
    };
    let types: Vec<Option<DataType>> = values.iter().map(|value| value.get_type(schema).ok()).collect();
    if is_zoned(data_type) {
        for (value, found) in values.iter_mut().zip(&types) {
            if found.as_ref().is_some_and(is_day) {
                *value = midnight(std::mem::take(value));
            }
        }
    }
    match is_day(data_type) && types.iter().flatten().any(is_zoned) {
        true => midnight(expr),
        false => expr,
    }
}

/// Decimals that are compared with floats become floats, since NaN has no decimal. Literals are converted one by one.
fn decimals_as_floats(expr: Expr, data_type: &DataType, values: &mut [Expr], schema: &DFSchema) -> Expr {
    let is_decimal = |found: &DataType| matches!(found, DataType::Decimal128(..) | DataType::Decimal256(..));
    let as_float = |decimal: Expr| Expr::Cast(Cast::new(Box::new(decimal), DataType::Float64));
    let mut meets_float = false;
    for value in values.iter_mut() {
        let Ok(found) = value.get_type(schema) else { continue };
        let is_number = match &*value {
            Expr::Literal(ScalarValue::Float64(number), _) => number.is_none_or(f64::is_finite),
            Expr::Literal(..) => true,
            _ => false,
        };
        meets_float |= found.is_floating() && !is_number;
        if data_type.is_floating() && is_decimal(&found) && !matches!(value, Expr::Literal(..)) {
            *value = as_float(std::mem::take(value));
        }
    }
    match is_decimal(data_type) && meets_float && !matches!(expr, Expr::Literal(..)) {
        true => as_float(expr),
        false => expr,
    }
}

/// The outcome of converting a literal.
enum Fit {
    Keep,
    Replace(ScalarValue),
    Refuse,
}

fn fit_value(value: &ScalarValue, wanted: &DataType) -> Fit {
    if value.is_null() {
        return Fit::Keep;
    }
    let found = value.data_type();
    let is_text = matches!(wanted, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    if let Some(text) = value.try_as_str().flatten() {
        return match wanted {
            _ if is_text || wanted.is_binary() || wanted.is_null() => Fit::Keep,
            DataType::FixedSizeBinary(_) => Fit::Keep,
            DataType::Boolean => from_text(text, wanted),
            _ if wanted.is_primitive() => from_text(text, wanted),
            _ => Fit::Refuse,
        };
    }
    match (value, wanted) {
        _ if found.is_numeric() && (is_text || wanted.is_temporal()) => Fit::Refuse,
        (ScalarValue::Float64(Some(number)), DataType::Decimal128(..) | DataType::Decimal256(..)) => {
            exact_decimal(*number)
        }
        (ScalarValue::Float64(Some(number)), DataType::Float16 | DataType::Float32) => match value.cast_to(wanted) {
            // A number beyond the narrow type's range stays as it is: as infinity, or as zero, it would be another number.
            Ok(narrow) if !number.is_finite() || (is_finite(&narrow) && is_zero(&narrow) == (*number == 0.0)) => {
                Fit::Replace(narrow)
            }
            _ => Fit::Keep,
        },
        // A whole number that was written as a float, or is too large for any integer type, is compared exactly.
        (ScalarValue::Float64(Some(number)), _) if wanted.is_integer() && number.fract() == 0.0 => {
            match exact_decimal(*number) {
                Fit::Replace(whole) => whole
                    .cast_to(&DataType::Int64)
                    .map_or(Fit::Replace(whole), Fit::Replace),
                other => other,
            }
        }
        // As decimals, floats would be truncated and NaN would be an error.
        (ScalarValue::Decimal128(..) | ScalarValue::Decimal256(..), _) if wanted.is_floating() => {
            value.cast_to(&DataType::Float64).map_or(Fit::Keep, Fit::Replace)
        }
        (ScalarValue::Int64(_) | ScalarValue::UInt64(_), _) if wanted.is_floating() => {
            value.cast_to(wanted).map_or(Fit::Keep, Fit::Replace)
        }
        (_, DataType::Time32(_) | DataType::Time64(_))
            if matches!(found, DataType::Time32(_) | DataType::Time64(_)) =>
        {
            lossless(value, wanted).map_or(Fit::Keep, Fit::Replace)
        }
        _ => Fit::Keep,
    }
}

fn from_text(text: &str, wanted: &DataType) -> Fit {
    match ScalarValue::try_from_string(text.trim().to_owned(), wanted) {
        Ok(value) if !value.is_null() => Fit::Replace(value),
        _ => Fit::Refuse,
    }
}

fn is_zero(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float16(Some(number)) => number.to_f32() == 0.0,
        ScalarValue::Float32(Some(number)) => *number == 0.0,
        _ => false,
    }
}

fn is_finite(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float16(Some(number)) => number.is_finite(),
        ScalarValue::Float32(Some(number)) => number.is_finite(),
        _ => true,
    }
}

/// The decimal literal that the parser turned into a float: the float's shortest text is what was written.
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
