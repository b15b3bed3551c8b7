//! Vectorised pruning: comparisons of a column with a literal, checked against the bounds of all groups at once.
//!
//! It only rules groups out; those that it leaves are checked one by one in [`crate::prune`]. So it may skip whatever is hard: nulls, and
//! floats, whose NaN lies outside of the bounds.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Int16Type, Int32Type, Int64Type, Int8Type, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::{BinaryExpr, Expr, Operator};

use crate::depth::DEPTH_LIMIT;
use crate::prune::ColumnRanges;

/// For each group, whether a comparison that the condition requires cannot hold.
pub(crate) fn ruled_out(expr: &Expr, ranges: &ColumnRanges, groups: usize) -> Vec<bool> {
    let mut out = vec![false; groups];
    conjunction(expr, ranges, &mut out, 0);
    out
}

fn conjunction(expr: &Expr, ranges: &ColumnRanges, out: &mut [bool], depth: usize) {
    if depth > DEPTH_LIMIT {
        return;
    }
    match expr {
        Expr::Alias(alias) => conjunction(&alias.expr, ranges, out, depth + 1),
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And,
            right,
        }) => {
            conjunction(left, ranges, out, depth + 1);
            conjunction(right, ranges, out, depth + 1);
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (left.as_ref(), right.as_ref()) {
            (Expr::Column(column), Expr::Literal(value, _)) => comparison(column.name(), *op, value, ranges, out),
            (Expr::Literal(value, _), Expr::Column(column)) => {
                if let Some(op) = op.swap() {
                    comparison(column.name(), op, value, ranges, out);
                }
            }
            _ => {}
        },
        _ => {}
    }
}

fn comparison(column: &str, op: Operator, value: &ScalarValue, ranges: &ColumnRanges, out: &mut [bool]) {
    let Some(range) = ranges.get(&[column.to_owned()][..]) else {
        return;
    };
    if value.is_null() || value.data_type() != *range.min.data_type() {
        return;
    }
    match op {
        Operator::Gt => bounds(&range.max, value, out, |max, value| max <= value),
        Operator::GtEq => bounds(&range.max, value, out, |max, value| max < value),
        Operator::Lt => bounds(&range.min, value, out, |min, value| min >= value),
        Operator::LtEq => bounds(&range.min, value, out, |min, value| min > value),
        Operator::Eq => {
            bounds(&range.max, value, out, |max, value| max < value);
            bounds(&range.min, value, out, |min, value| min > value);
        }
        _ => {}
    }
}

/// Marks the groups whose bound compares with the value in the way of `is_out`, which is called with the ordering (-1, 0 or 1) and 0.
fn bounds(array: &ArrayRef, value: &ScalarValue, out: &mut [bool], is_out: fn(i8, i8) -> bool) {
    let order = |ordering: std::cmp::Ordering| match ordering {
        std::cmp::Ordering::Less => is_out(-1, 0),
        std::cmp::Ordering::Equal => is_out(0, 0),
        std::cmp::Ordering::Greater => is_out(1, 0),
    };
    macro_rules! numbers {
        ($kind:ty, $variant:pat => $value:expr) => {
            if let $variant = value {
                mark::<$kind>(array, out, |bound| order(bound.cmp($value)));
            }
        };
    }
    match array.data_type() {
        DataType::Int8 => numbers!(Int8Type, ScalarValue::Int8(Some(v)) => v),
        DataType::Int16 => numbers!(Int16Type, ScalarValue::Int16(Some(v)) => v),
        DataType::Int32 => numbers!(Int32Type, ScalarValue::Int32(Some(v)) => v),
        DataType::Int64 => numbers!(Int64Type, ScalarValue::Int64(Some(v)) => v),
        DataType::Date32 => numbers!(Date32Type, ScalarValue::Date32(Some(v)) => v),
        DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, _) => {
            numbers!(TimestampMicrosecondType, ScalarValue::TimestampMicrosecond(Some(v), _) => v);
        }
        DataType::Decimal128(_, _) => numbers!(Decimal128Type, ScalarValue::Decimal128(Some(v), _, _) => v),
        DataType::Utf8 => {
            if let (Some(texts), ScalarValue::Utf8(Some(value))) = (array.as_string_opt::<i32>(), value) {
                for (out, bound) in out.iter_mut().zip(texts.iter()) {
                    *out |= bound.is_some_and(|bound| order(bound.cmp(value.as_str())));
                }
            }
        }
        _ => {}
    }
}

fn mark<T: ArrowPrimitiveType>(array: &ArrayRef, out: &mut [bool], is_out: impl Fn(&T::Native) -> bool) {
    let Some(array) = array.as_primitive_opt::<T>() else {
        return;
    };
    match array.nulls() {
        None => {
            for (out, bound) in out.iter_mut().zip(array.values()) {
                *out |= is_out(bound);
            }
        }
        Some(nulls) => {
            for ((out, bound), valid) in out.iter_mut().zip(array.values()).zip(nulls) {
                *out |= valid && is_out(bound);
            }
        }
    }
}
