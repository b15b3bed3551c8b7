//! Conditions that say no more than in which range a number lies: asked of all rows at once by a kernel of their own.
//!
//! `a >= 5 AND a < 9`, `a = 5`, `a BETWEEN 5 AND 8`, of one column of integers, dates, times, timestamps, durations, or of floats in the order
//! that Arrow compares them in. What else a condition says is DataFusion's to evaluate.

use arrow_array::{Array, BooleanArray};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, ScalarBuffer};
use arrow_schema::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::expr::Between;
use datafusion_expr::{BinaryExpr, Expr, Operator};
use esker_codec::ranges::{self, Number};

/// Conditions that are nested deeper are left to DataFusion.
const DEPTH_LIMIT: usize = 64;

/// A range of the numbers of a column, both ends in it; empty where the lower one is above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Within {
    low: i128,
    high: i128,
}

/// How the values of a type are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl Storage {
    fn of(data_type: &DataType) -> Option<Storage> {
        Some(match data_type {
            DataType::Int8 => Storage::I8,
            DataType::Int16 => Storage::I16,
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) => Storage::I32,
            DataType::Int64
            | DataType::Date64
            | DataType::Time64(_)
            | DataType::Timestamp(_, _)
            | DataType::Duration(_) => Storage::I64,
            DataType::UInt8 => Storage::U8,
            DataType::UInt16 => Storage::U16,
            DataType::UInt32 => Storage::U32,
            DataType::UInt64 => Storage::U64,
            DataType::Float32 => Storage::F32,
            DataType::Float64 => Storage::F64,
            _ => return None,
        })
    }
}

impl Within {
    /// The range that a condition over one column says, and nothing else.
    pub(crate) fn of(condition: &Expr, name: &str, data_type: &DataType) -> Option<Within> {
        Storage::of(data_type)?;
        of(condition, name, data_type, 0)
    }

    /// What is true of each value; null of nulls.
    pub(crate) fn ask(self, values: &dyn Array) -> Option<BooleanArray> {
        let words = match Storage::of(values.data_type())? {
            Storage::I8 => self.words(&numbers::<i8>(values)?),
            Storage::I16 => self.words(&numbers::<i16>(values)?),
            Storage::I32 => self.words(&numbers::<i32>(values)?),
            Storage::I64 => self.words(&numbers::<i64>(values)?),
            Storage::U8 => self.words(&numbers::<u8>(values)?),
            Storage::U16 => self.words(&numbers::<u16>(values)?),
            Storage::U32 => self.words(&numbers::<u32>(values)?),
            Storage::U64 => self.words(&numbers::<u64>(values)?),
            Storage::F32 => self.words(
                &numbers::<i32>(values)?
                    .iter()
                    .map(|bits| order_32(*bits))
                    .collect::<Vec<_>>(),
            ),
            Storage::F64 => self.words(
                &numbers::<i64>(values)?
                    .iter()
                    .map(|bits| order_64(*bits))
                    .collect::<Vec<_>>(),
            ),
        };
        let found = BooleanBuffer::new(Buffer::from_vec(words), 0, values.len());
        Some(BooleanArray::new(found, values.nulls().cloned()))
    }

    fn words<T: Number + TryFrom<i128>>(self, numbers: &[T]) -> Vec<u64> {
        // Both are of the column's type, or beyond it where no number is within.
        match (T::try_from(self.low), T::try_from(self.high)) {
            (Ok(low), Ok(high)) => ranges::within(numbers, low, high),
            _ => vec![0; numbers.len().div_ceil(64)],
        }
    }

    fn and(self, other: Within) -> Within {
        Within {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
        }
    }
}

/// The bits of a float as a number that compares as Arrow compares floats: by IEEE 754's `totalOrder`.
fn order_64(bits: i64) -> i64 {
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

fn order_32(bits: i32) -> i32 {
    bits ^ ((bits >> 31).cast_unsigned() >> 1).cast_signed()
}

/// The values as numbers of the size that they are stored in.
fn numbers<T: ArrowNativeType>(values: &dyn Array) -> Option<ScalarBuffer<T>> {
    let data = values.to_data();
    let buffer = data.buffers().first()?;
    let bytes = (data.offset() + data.len()).checked_mul(size_of::<T>())?;
    (bytes <= buffer.len()).then(|| ScalarBuffer::new(buffer.clone(), data.offset(), data.len()))
}

fn of(condition: &Expr, name: &str, data_type: &DataType, depth: usize) -> Option<Within> {
    if depth > DEPTH_LIMIT {
        return None;
    }
    match condition {
        Expr::Alias(alias) => of(&alias.expr, name, data_type, depth + 1),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if *op == Operator::And => {
            let left = of(left, name, data_type, depth + 1)?;
            Some(left.and(of(right, name, data_type, depth + 1)?))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (op, value) = match (is_column(left, name), is_column(right, name)) {
                (true, false) => (*op, right),
                (false, true) => (op.swap()?, left),
                _ => return None,
            };
            let value = number(value, data_type)?;
            let (least, most) = ends(data_type)?;
            let (low, high) = match op {
                Operator::Eq => (value, value),
                Operator::Lt => (least, value - 1),
                Operator::LtEq => (least, value),
                Operator::Gt => (value + 1, most),
                Operator::GtEq => (value, most),
                _ => return None,
            };
            Some(Within { low, high })
        }
        Expr::Between(Between {
            expr,
            negated: false,
            low,
            high,
        }) if is_column(expr, name) => Some(Within {
            low: number(low, data_type)?,
            high: number(high, data_type)?,
        }),
        _ => None,
    }
}

fn is_column(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Column(column) if column.name() == name)
}

/// The least and the greatest number of a type.
fn ends(data_type: &DataType) -> Option<(i128, i128)> {
    Some(match Storage::of(data_type)? {
        Storage::I8 => (i8::MIN.into(), i8::MAX.into()),
        Storage::I16 => (i16::MIN.into(), i16::MAX.into()),
        Storage::I32 | Storage::F32 => (i32::MIN.into(), i32::MAX.into()),
        Storage::I64 | Storage::F64 => (i64::MIN.into(), i64::MAX.into()),
        Storage::U8 => (0, u8::MAX.into()),
        Storage::U16 => (0, u16::MAX.into()),
        Storage::U32 => (0, u32::MAX.into()),
        Storage::U64 => (0, u64::MAX.into()),
    })
}

/// The number that a literal of this very type is.
fn number(literal: &Expr, data_type: &DataType) -> Option<i128> {
    let Expr::Literal(value, _) = literal else {
        return None;
    };
    if value.data_type() != *data_type {
        return None;
    }
    Some(match value {
        ScalarValue::Int8(Some(value)) => i128::from(*value),
        ScalarValue::Int16(Some(value)) => i128::from(*value),
        ScalarValue::Int32(Some(value)) | ScalarValue::Date32(Some(value)) => i128::from(*value),
        ScalarValue::Time32Second(Some(value)) | ScalarValue::Time32Millisecond(Some(value)) => i128::from(*value),
        ScalarValue::Int64(Some(value)) | ScalarValue::Date64(Some(value)) => i128::from(*value),
        ScalarValue::Time64Microsecond(Some(value)) | ScalarValue::Time64Nanosecond(Some(value)) => i128::from(*value),
        ScalarValue::TimestampSecond(Some(value), _)
        | ScalarValue::TimestampMillisecond(Some(value), _)
        | ScalarValue::TimestampMicrosecond(Some(value), _)
        | ScalarValue::TimestampNanosecond(Some(value), _)
        | ScalarValue::DurationSecond(Some(value))
        | ScalarValue::DurationMillisecond(Some(value))
        | ScalarValue::DurationMicrosecond(Some(value))
        | ScalarValue::DurationNanosecond(Some(value)) => i128::from(*value),
        ScalarValue::UInt8(Some(value)) => i128::from(*value),
        ScalarValue::UInt16(Some(value)) => i128::from(*value),
        ScalarValue::UInt32(Some(value)) => i128::from(*value),
        ScalarValue::UInt64(Some(value)) => i128::from(*value),
        // Zeros, of which there are two, and NaN are DataFusion's.
        ScalarValue::Float32(Some(value)) if *value != 0.0 && !value.is_nan() => {
            i128::from(order_32(value.to_bits().cast_signed()))
        }
        ScalarValue::Float64(Some(value)) if *value != 0.0 && !value.is_nan() => {
            i128::from(order_64(value.to_bits().cast_signed()))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
