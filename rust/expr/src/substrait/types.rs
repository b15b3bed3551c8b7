//! Converts Substrait types to Arrow types.

use std::sync::Arc;

use arrow_schema::{DataType, Field, TimeUnit};

use super::extensions::Extensions;
use super::messages::{Kind, Type};
use crate::error::{ExprError, Result};

/// The Arrow type. Foreign types are those that pyarrow declares where Substrait has none.
pub(super) fn data_type(message: &Type, extensions: &Extensions) -> Result<DataType> {
    let Some(kind) = &message.kind else {
        return Err(ExprError::unsupported(
            "expected a Substrait type that esker knows, found another",
        ));
    };
    Ok(match kind {
        Kind::Bool(_) => DataType::Boolean,
        Kind::I8(_) => DataType::Int8,
        Kind::I16(_) => DataType::Int16,
        Kind::I32(_) => DataType::Int32,
        Kind::I64(_) => DataType::Int64,
        Kind::Fp32(_) => DataType::Float32,
        Kind::Fp64(_) => DataType::Float64,
        Kind::String(_) | Kind::FixedChar(_) | Kind::VarChar(_) => DataType::Utf8,
        Kind::Binary(_) => DataType::Binary,
        Kind::Timestamp(_) => DataType::Timestamp(TimeUnit::Microsecond, None),
        Kind::TimestampTz(_) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Kind::PrecisionTimestamp(precise) => DataType::Timestamp(time_unit(precise.precision)?, None),
        Kind::PrecisionTimestampTz(precise) => DataType::Timestamp(time_unit(precise.precision)?, Some("UTC".into())),
        Kind::Date(_) => DataType::Date32,
        Kind::Time(_) => DataType::Time64(TimeUnit::Microsecond),
        Kind::PrecisionTime(precise) => match time_unit(precise.precision)? {
            unit @ (TimeUnit::Second | TimeUnit::Millisecond) => DataType::Time32(unit),
            unit => DataType::Time64(unit),
        },
        Kind::FixedBinary(fixed) if fixed.length >= 0 => DataType::FixedSizeBinary(fixed.length),
        Kind::Uuid(_) => DataType::FixedSizeBinary(16),
        Kind::Decimal(decimal) => decimal_type(decimal.precision, decimal.scale)?,
        Kind::List(list) => {
            let element = list
                .element
                .as_ref()
                .map_or(Ok(DataType::Null), |element| data_type(element, extensions))?;
            DataType::List(Arc::new(Field::new_list_field(element, true)))
        }
        Kind::UserDefined(foreign) => foreign_type(extensions.type_name(foreign.type_reference)?)?,
        Kind::FixedBinary(_) | Kind::Struct(_) | Kind::Map(_) => {
            return Err(ExprError::unsupported(
                "expected a Substrait type that a value can be cast to, found a struct or map",
            ));
        }
    })
}

/// The Arrow type of a name that pyarrow declares for a foreign type.
pub(super) fn foreign_type(name: &str) -> Result<DataType> {
    Ok(match name {
        "u8" => DataType::UInt8,
        "u16" => DataType::UInt16,
        "u32" => DataType::UInt32,
        "u64" => DataType::UInt64,
        "fp16" => DataType::Float16,
        "null" => DataType::Null,
        "large_string" => DataType::LargeUtf8,
        "large_binary" => DataType::LargeBinary,
        "date_millis" => DataType::Date64,
        "time_seconds" => DataType::Time32(TimeUnit::Second),
        "time_millis" => DataType::Time32(TimeUnit::Millisecond),
        "time_nanos" => DataType::Time64(TimeUnit::Nanosecond),
        other => {
            return Err(ExprError::unsupported(format!(
                "expected a type that esker knows, found Substrait type {other}"
            )))
        }
    })
}

pub(super) fn decimal_type(precision: i32, scale: i32) -> Result<DataType> {
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(precision @ 1..=38), Ok(scale)) => Ok(DataType::Decimal128(precision, scale)),
        _ => Err(ExprError::invalid(format!(
            "expected a decimal of 1 to 38 digits, found {precision} with scale {scale}"
        ))),
    }
}

pub(super) fn time_unit(precision: i32) -> Result<TimeUnit> {
    match precision {
        0 => Ok(TimeUnit::Second),
        3 => Ok(TimeUnit::Millisecond),
        6 => Ok(TimeUnit::Microsecond),
        9 => Ok(TimeUnit::Nanosecond),
        other => Err(ExprError::unsupported(format!(
            "expected a time of 0, 3, 6 or 9 digits, found {other}"
        ))),
    }
}
