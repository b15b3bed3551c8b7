//! Arrow types from an IPC file's schema, checked, since arrow-rs' own conversion trusts them.

use std::sync::Arc;

use arrow_ipc::{DateUnit, Field as IpcField, IntervalUnit as IpcInterval, Precision, TimeUnit as IpcUnit, Type};
use arrow_schema::{
    DataType, Field, IntervalUnit, TimeUnit, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION,
    DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION,
};

use crate::error::{ExprError, Result};

/// The deepest nesting of types.
const NESTING_LIMIT: usize = 32;

/// The type of a field's values; for a dictionary, the type of its values, not of its keys.
pub(super) fn value_type(field: &IpcField<'_>, depth: usize) -> Result<DataType> {
    if depth > NESTING_LIMIT {
        return Err(ExprError::invalid(format!(
            "expected a type of at most {NESTING_LIMIT} levels in the Arrow expression, found more"
        )));
    }
    let unknown = || {
        ExprError::unsupported(format!(
            "expected a type that esker knows, found {:?}",
            field.type_type()
        ))
    };
    let found = match field.type_type() {
        Type::Null => Some(DataType::Null),
        Type::Bool => Some(DataType::Boolean),
        Type::Int => field
            .type_as_int()
            .and_then(|int| integer(int.bitWidth(), int.is_signed())),
        Type::FloatingPoint => field
            .type_as_floating_point()
            .and_then(|float| match float.precision() {
                Precision::HALF => Some(DataType::Float16),
                Precision::SINGLE => Some(DataType::Float32),
                Precision::DOUBLE => Some(DataType::Float64),
                _ => None,
            }),
        Type::Utf8 => Some(DataType::Utf8),
        Type::LargeUtf8 => Some(DataType::LargeUtf8),
        Type::Utf8View => Some(DataType::Utf8View),
        Type::Binary => Some(DataType::Binary),
        Type::LargeBinary => Some(DataType::LargeBinary),
        Type::BinaryView => Some(DataType::BinaryView),
        Type::FixedSizeBinary => {
            let width = field.type_as_fixed_size_binary().map(|fixed| fixed.byteWidth());
            width.filter(|width| *width > 0).map(DataType::FixedSizeBinary)
        }
        Type::Decimal => field
            .type_as_decimal()
            .and_then(|decimal| decimal_type(decimal.bitWidth(), decimal.precision(), decimal.scale())),
        Type::Date => field.type_as_date().and_then(|date| match date.unit() {
            DateUnit::DAY => Some(DataType::Date32),
            DateUnit::MILLISECOND => Some(DataType::Date64),
            _ => None,
        }),
        Type::Time => field
            .type_as_time()
            .and_then(|time| match (time.bitWidth(), unit(time.unit())?) {
                (32, unit @ (TimeUnit::Second | TimeUnit::Millisecond)) => Some(DataType::Time32(unit)),
                (64, unit @ (TimeUnit::Microsecond | TimeUnit::Nanosecond)) => Some(DataType::Time64(unit)),
                _ => None,
            }),
        Type::Timestamp => field.type_as_timestamp().and_then(|time| {
            let zone = time.timezone().filter(|zone| !zone.is_empty());
            Some(DataType::Timestamp(unit(time.unit())?, zone.map(Into::into)))
        }),
        Type::Duration => field
            .type_as_duration()
            .and_then(|duration| unit(duration.unit()).map(DataType::Duration)),
        Type::Interval => field.type_as_interval().and_then(|interval| match interval.unit() {
            IpcInterval::MONTH_DAY_NANO => Some(DataType::Interval(IntervalUnit::MonthDayNano)),
            _ => None,
        }),
        Type::List => Some(DataType::List(Arc::new(only_child(field, depth)?))),
        Type::LargeList => Some(DataType::LargeList(Arc::new(only_child(field, depth)?))),
        Type::FixedSizeList => match field.type_as_fixed_size_list().map(|list| list.listSize()) {
            Some(size) if size > 0 => Some(DataType::FixedSizeList(Arc::new(only_child(field, depth)?), size)),
            _ => None,
        },
        Type::Map => {
            let entries = only_child(field, depth)?;
            let is_entries = matches!(entries.data_type(), DataType::Struct(fields) if fields.len() == 2);
            is_entries.then(|| DataType::Map(Arc::new(entries), false))
        }
        Type::Struct_ => {
            let children = field.children().into_iter().flatten();
            let children = children.map(|child| arrow_field(&child, depth + 1));
            Some(DataType::Struct(children.collect::<Result<Vec<_>>>()?.into()))
        }
        _ => None,
    };
    found.ok_or_else(unknown)
}

/// The Arrow field, as a dictionary type if it is dictionary-encoded.
pub(super) fn arrow_field(field: &IpcField<'_>, depth: usize) -> Result<Field> {
    let values = value_type(field, depth)?;
    let data_type = match field.dictionary() {
        None => values,
        Some(dictionary) => {
            let keys = dictionary.indexType();
            let keys = keys.map_or(Some(DataType::Int32), |int| integer(int.bitWidth(), int.is_signed()));
            let keys =
                keys.ok_or_else(|| ExprError::invalid("expected integers as keys of a dictionary, found others"))?;
            DataType::Dictionary(Box::new(keys), Box::new(values))
        }
    };
    Ok(Field::new(field.name().unwrap_or_default(), data_type, true))
}

fn only_child(field: &IpcField<'_>, depth: usize) -> Result<Field> {
    let mut children = field.children().into_iter().flatten();
    match (children.next(), children.next()) {
        (Some(child), None) => arrow_field(&child, depth + 1),
        _ => Err(ExprError::invalid(
            "expected one type in a list of the Arrow expression, found none or more",
        )),
    }
}

fn integer(bits: i32, signed: bool) -> Option<DataType> {
    Some(match (bits, signed) {
        (8, true) => DataType::Int8,
        (16, true) => DataType::Int16,
        (32, true) => DataType::Int32,
        (64, true) => DataType::Int64,
        (8, false) => DataType::UInt8,
        (16, false) => DataType::UInt16,
        (32, false) => DataType::UInt32,
        (64, false) => DataType::UInt64,
        _ => return None,
    })
}

fn unit(unit: IpcUnit) -> Option<TimeUnit> {
    Some(match unit {
        IpcUnit::SECOND => TimeUnit::Second,
        IpcUnit::MILLISECOND => TimeUnit::Millisecond,
        IpcUnit::MICROSECOND => TimeUnit::Microsecond,
        IpcUnit::NANOSECOND => TimeUnit::Nanosecond,
        _ => return None,
    })
}

fn decimal_type(bits: i32, precision: i32, scale: i32) -> Option<DataType> {
    let (precision, scale) = (u8::try_from(precision).ok()?, i8::try_from(scale).ok()?);
    let (most, data_type) = match bits {
        32 => (DECIMAL32_MAX_PRECISION, DataType::Decimal32(precision, scale)),
        64 => (DECIMAL64_MAX_PRECISION, DataType::Decimal64(precision, scale)),
        128 => (DECIMAL128_MAX_PRECISION, DataType::Decimal128(precision, scale)),
        256 => (DECIMAL256_MAX_PRECISION, DataType::Decimal256(precision, scale)),
        _ => return None,
    };
    ((1..=most).contains(&precision) && i32::from(scale) <= i32::from(precision)).then_some(data_type)
}
