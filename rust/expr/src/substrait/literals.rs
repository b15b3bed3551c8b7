//! Decodes Substrait literals to scalar values.

use arrow_schema::{DataType, TimeUnit};
use datafusion_common::ScalarValue;
use prost::Message;

use super::extensions::Extensions;
use super::messages::{Literal, LiteralType, Packed, Precise, UserDefinedLiteral};
use super::types::{data_type, decimal_type, foreign_type, time_unit};
use crate::error::{ExprError, Result};

/// The value of a literal.
pub(super) fn scalar(literal: &Literal, extensions: &Extensions) -> Result<ScalarValue> {
    let Some(kind) = &literal.literal else {
        return Err(ExprError::unsupported(
            "expected a Substrait literal that esker knows, found another",
        ));
    };
    Ok(match kind {
        LiteralType::Boolean(value) => ScalarValue::Boolean(Some(*value)),
        LiteralType::I8(value) => ScalarValue::Int8(Some(narrow(*value)?)),
        LiteralType::I16(value) => ScalarValue::Int16(Some(narrow(*value)?)),
        LiteralType::I32(value) => ScalarValue::Int32(Some(*value)),
        LiteralType::I64(value) => ScalarValue::Int64(Some(*value)),
        LiteralType::Fp32(value) => ScalarValue::Float32(Some(*value)),
        LiteralType::Fp64(value) => ScalarValue::Float64(Some(*value)),
        LiteralType::String(value) | LiteralType::FixedChar(value) => ScalarValue::Utf8(Some(value.clone())),
        LiteralType::VarChar(text) => ScalarValue::Utf8(Some(text.value.clone())),
        LiteralType::Binary(value) => ScalarValue::Binary(Some(value.clone())),
        LiteralType::FixedBinary(value) | LiteralType::Uuid(value) => {
            ScalarValue::FixedSizeBinary(narrow(value.len())?, Some(value.clone()))
        }
        LiteralType::Timestamp(value) => ScalarValue::TimestampMicrosecond(Some(*value), None),
        LiteralType::TimestampTz(value) => ScalarValue::TimestampMicrosecond(Some(*value), Some("UTC".into())),
        LiteralType::PrecisionTimestamp(precise) => timestamp(precise, None)?,
        LiteralType::PrecisionTimestampTz(precise) => timestamp(precise, Some("UTC"))?,
        LiteralType::Date(days) => ScalarValue::Date32(Some(*days)),
        LiteralType::Time(value) => ScalarValue::Time64Microsecond(Some(*value)),
        LiteralType::PrecisionTime(precise) => match time_unit(precise.precision)? {
            TimeUnit::Second => ScalarValue::Time32Second(Some(narrow(precise.value)?)),
            TimeUnit::Millisecond => ScalarValue::Time32Millisecond(Some(narrow(precise.value)?)),
            TimeUnit::Microsecond => ScalarValue::Time64Microsecond(Some(precise.value)),
            TimeUnit::Nanosecond => ScalarValue::Time64Nanosecond(Some(precise.value)),
        },
        LiteralType::Decimal(decimal) => {
            let bytes: [u8; 16] = decimal.value.as_slice().try_into().map_err(|_| {
                ExprError::invalid(format!("expected a decimal of 16 bytes, found {}", decimal.value.len()))
            })?;
            match decimal_type(decimal.precision, decimal.scale)? {
                DataType::Decimal128(precision, scale) => {
                    ScalarValue::Decimal128(Some(i128::from_le_bytes(bytes)), precision, scale)
                }
                other => return Err(ExprError::unsupported(format!("expected a decimal, found {other}"))),
            }
        }
        LiteralType::Null(of) => null_of(&data_type(of, extensions)?)?,
        LiteralType::List(list) => {
            let values: Vec<ScalarValue> = list
                .values
                .iter()
                .map(|value| scalar(value, extensions))
                .collect::<Result<_>>()?;
            let element = values.first().map_or(DataType::Null, ScalarValue::data_type);
            if let Some(other) = values.iter().find(|value| value.data_type() != element) {
                return Err(ExprError::invalid(format!(
                    "expected a list of {element}, found one that holds {} too",
                    other.data_type()
                )));
            }
            ScalarValue::List(ScalarValue::new_list_nullable(&values, &element))
        }
        LiteralType::EmptyList(list) => {
            let element = list
                .element
                .as_ref()
                .map_or(Ok(DataType::Null), |element| data_type(element, extensions))?;
            ScalarValue::List(ScalarValue::new_list_nullable(&[], &element))
        }
        LiteralType::UserDefined(foreign) => foreign_scalar(foreign, extensions)?,
        LiteralType::Struct(_) => {
            return Err(ExprError::unsupported(
                "expected a literal of a simple type, found a struct",
            ))
        }
    })
}

fn timestamp(precise: &Precise, zone: Option<&str>) -> Result<ScalarValue> {
    let (value, zone) = (Some(precise.value), zone.map(Into::into));
    Ok(match time_unit(precise.precision)? {
        TimeUnit::Second => ScalarValue::TimestampSecond(value, zone),
        TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(value, zone),
        TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(value, zone),
        TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(value, zone),
    })
}

/// A value of one of pyarrow's own types: an integer, text or bytes in a wrapper message, then cast to the type.
fn foreign_scalar(foreign: &UserDefinedLiteral, extensions: &Extensions) -> Result<ScalarValue> {
    let wanted = foreign_type(extensions.type_name(foreign.type_reference)?)?;
    let value = foreign
        .value
        .as_ref()
        .map(unpack)
        .transpose()?
        .unwrap_or(ScalarValue::Null);
    let value = match (&wanted, value) {
        // Not all casts from plain integers to these types exist; the bits are the same.
        (DataType::Date64, ScalarValue::Int64(value)) => ScalarValue::Date64(value),
        (DataType::Time64(TimeUnit::Nanosecond), ScalarValue::Int64(value)) => ScalarValue::Time64Nanosecond(value),
        (DataType::Time32(TimeUnit::Millisecond), ScalarValue::Int32(value)) => ScalarValue::Time32Millisecond(value),
        (DataType::Time32(TimeUnit::Second), ScalarValue::Int32(value)) => ScalarValue::Time32Second(value),
        (_, value) => value,
    };
    value
        .cast_to(&wanted)
        .map_err(|error| ExprError::from_datafusion("cannot read a Substrait literal", &error))
}

/// The value in a `google.protobuf` wrapper: all of them hold it in field 1.
fn unpack(packed: &Packed) -> Result<ScalarValue> {
    let corrupt = |error: prost::DecodeError| ExprError::invalid(format!("cannot decode a Substrait literal: {error}"));
    let name = packed.type_url.rsplit('.').next().unwrap_or_default();
    let bytes = packed.value.as_slice();
    Ok(match name {
        "BoolValue" => ScalarValue::Boolean(Some(bool::decode(bytes).map_err(corrupt)?)),
        "Int32Value" => ScalarValue::Int32(Some(i32::decode(bytes).map_err(corrupt)?)),
        "Int64Value" => ScalarValue::Int64(Some(i64::decode(bytes).map_err(corrupt)?)),
        "UInt32Value" => ScalarValue::UInt32(Some(u32::decode(bytes).map_err(corrupt)?)),
        "UInt64Value" => ScalarValue::UInt64(Some(u64::decode(bytes).map_err(corrupt)?)),
        "FloatValue" => ScalarValue::Float32(Some(f32::decode(bytes).map_err(corrupt)?)),
        "DoubleValue" => ScalarValue::Float64(Some(f64::decode(bytes).map_err(corrupt)?)),
        "StringValue" => ScalarValue::Utf8(Some(String::decode(bytes).map_err(corrupt)?)),
        "BytesValue" => ScalarValue::Binary(Some(Vec::<u8>::decode(bytes).map_err(corrupt)?)),
        other => {
            return Err(ExprError::unsupported(format!(
                "expected a simple Substrait literal, found {other}"
            )))
        }
    })
}

fn null_of(data_type: &DataType) -> Result<ScalarValue> {
    ScalarValue::try_new_null(data_type).map_err(|error| ExprError::from_datafusion("cannot make a null", &error))
}

fn narrow<Wide: Copy + std::fmt::Display, Narrow: TryFrom<Wide>>(value: Wide) -> Result<Narrow> {
    Narrow::try_from(value)
        .map_err(|_| ExprError::invalid(format!("expected a literal that fits its type, found {value}")))
}
