//! The names that the format gives to Arrow types, for example `timestamp:us:UTC` or `fixed_size_list:float:768`.

use std::sync::Arc;

use arrow_schema::{DataType, Field, TimeUnit};

use crate::error::{FileError, Result};

const BFLOAT16: &str = "lance.bfloat16";
const EXTENSION_NAME: &str = "ARROW:extension:name";
const EXTENSION_METADATA: &str = "ARROW:extension:metadata";

fn unit_name(unit: &TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

fn parse_unit(name: &str) -> Option<TimeUnit> {
    Some(match name {
        "s" => TimeUnit::Second,
        "ms" => TimeUnit::Millisecond,
        "us" => TimeUnit::Microsecond,
        "ns" => TimeUnit::Nanosecond,
        _ => return None,
    })
}

/// The format's name of an Arrow type, or nothing where it has none. Children of lists and structs are fields of their own.
pub fn logical_from_data_type(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Null => "null".into(),
        DataType::Boolean => "bool".into(),
        DataType::Int8 => "int8".into(),
        DataType::UInt8 => "uint8".into(),
        DataType::Int16 => "int16".into(),
        DataType::UInt16 => "uint16".into(),
        DataType::Int32 => "int32".into(),
        DataType::UInt32 => "uint32".into(),
        DataType::Int64 => "int64".into(),
        DataType::UInt64 => "uint64".into(),
        DataType::Float16 => "halffloat".into(),
        DataType::Float32 => "float".into(),
        DataType::Float64 => "double".into(),
        DataType::Decimal128(precision, scale) => format!("decimal:128:{precision}:{scale}"),
        DataType::Decimal256(precision, scale) => format!("decimal:256:{precision}:{scale}"),
        DataType::Utf8 => "string".into(),
        DataType::Binary => "binary".into(),
        DataType::LargeUtf8 => "large_string".into(),
        DataType::LargeBinary => "large_binary".into(),
        DataType::Date32 => "date32:day".into(),
        DataType::Date64 => "date64:ms".into(),
        DataType::Time32(unit) => format!("time32:{}", unit_name(unit)),
        DataType::Time64(unit) => format!("time64:{}", unit_name(unit)),
        DataType::Timestamp(unit, zone) => format!("timestamp:{}:{}", unit_name(unit), zone.as_deref().unwrap_or("-")),
        DataType::Duration(unit) => format!("duration:{}", unit_name(unit)),
        DataType::Struct(_) => "struct".into(),
        DataType::List(item) if matches!(item.data_type(), DataType::Struct(_)) => "list.struct".into(),
        DataType::List(_) => "list".into(),
        DataType::LargeList(item) if matches!(item.data_type(), DataType::Struct(_)) => "large_list.struct".into(),
        DataType::LargeList(_) => "large_list".into(),
        DataType::Map(_, _) => "map".into(),
        DataType::FixedSizeBinary(width) => format!("fixed_size_binary:{width}"),
        DataType::FixedSizeList(item, size) => {
            if item.metadata().get(EXTENSION_NAME).is_some_and(|name| name == BFLOAT16) {
                format!("fixed_size_list:{BFLOAT16}:{size}")
            } else {
                format!("fixed_size_list:{}:{size}", logical_from_data_type(item.data_type())?)
            }
        }
        DataType::Dictionary(key, value) => {
            format!(
                "dict:{}:{}:false",
                logical_from_data_type(value)?,
                logical_from_data_type(key)?
            )
        }
        _ => return None,
    })
}

/// The Arrow type that a name stands for. Lists and structs have children and are not decided by the name alone.
pub fn data_type_from_logical(name: &str) -> Result<DataType> {
    parse(name).ok_or_else(|| {
        FileError::unsupported(format!(
            "expected a column type that this release knows, found '{name}'; a newer esker may read it"
        ))
    })
}

fn parse(name: &str) -> Option<DataType> {
    Some(match name {
        "null" => DataType::Null,
        "bool" => DataType::Boolean,
        "int8" => DataType::Int8,
        "uint8" => DataType::UInt8,
        "int16" => DataType::Int16,
        "uint16" => DataType::UInt16,
        "int32" => DataType::Int32,
        "uint32" => DataType::UInt32,
        "int64" => DataType::Int64,
        "uint64" => DataType::UInt64,
        "halffloat" => DataType::Float16,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "string" => DataType::Utf8,
        "binary" => DataType::Binary,
        "large_string" => DataType::LargeUtf8,
        "large_binary" | "json" | "blob" => DataType::LargeBinary,
        "date32:day" => DataType::Date32,
        "date64:ms" => DataType::Date64,
        _ => return parse_parameters(name),
    })
}

fn parse_parameters(name: &str) -> Option<DataType> {
    let (kind, rest) = name.split_once(':')?;
    match kind {
        "time32" => parse_unit(rest)
            .filter(|unit| matches!(unit, TimeUnit::Second | TimeUnit::Millisecond))
            .map(DataType::Time32),
        "time64" => parse_unit(rest)
            .filter(|unit| matches!(unit, TimeUnit::Microsecond | TimeUnit::Nanosecond))
            .map(DataType::Time64),
        "duration" => parse_unit(rest).map(DataType::Duration),
        "timestamp" => {
            let (unit, zone) = rest.split_once(':')?;
            let zone = if zone == "-" { None } else { Some(Arc::from(zone)) };
            Some(DataType::Timestamp(parse_unit(unit)?, zone))
        }
        "decimal" => {
            let mut parts = rest.split(':');
            let (bits, precision, scale) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            match bits {
                "128" if (1..=38).contains(&precision) => Some(DataType::Decimal128(precision, scale)),
                "256" if (1..=76).contains(&precision) => Some(DataType::Decimal256(precision, scale)),
                _ => None,
            }
        }
        "fixed_size_binary" => {
            let width: i32 = rest.parse().ok()?;
            (width >= 0).then_some(DataType::FixedSizeBinary(width))
        }
        "fixed_size_list" => {
            let (item, size) = rest.rsplit_once(':')?;
            let size: i32 = size.parse().ok()?;
            if size < 0 {
                return None;
            }
            let item = if item == BFLOAT16 {
                Field::new("item", DataType::FixedSizeBinary(2), true).with_metadata(
                    [
                        (EXTENSION_NAME.to_string(), BFLOAT16.to_string()),
                        (EXTENSION_METADATA.to_string(), String::new()),
                    ]
                    .into(),
                )
            } else {
                Field::new("item", parse(item)?, true)
            };
            Some(DataType::FixedSizeList(Arc::new(item), size))
        }
        "dict" => {
            // dict:{value}:{key}:{ordered}; a value type may itself hold colons, the key never does.
            let (rest, _ordered) = rest.rsplit_once(':')?;
            let (value, key) = rest.rsplit_once(':')?;
            let key = parse(key).filter(DataType::is_dictionary_key_type)?;
            Some(DataType::Dictionary(Box::new(key), Box::new(parse(value)?)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_every_name_comes_back_as_its_type() {
        let vector = DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Float32, true)), 768);
        let types = [
            DataType::Null,
            DataType::Float16,
            DataType::Decimal128(7, -3),
            DataType::Decimal256(70, 3),
            DataType::Time32(TimeUnit::Second),
            DataType::Time64(TimeUnit::Nanosecond),
            DataType::Timestamp(TimeUnit::Microsecond, None),
            DataType::Timestamp(TimeUnit::Nanosecond, Some("+05:30".into())),
            DataType::Duration(TimeUnit::Millisecond),
            DataType::FixedSizeBinary(16),
            vector.clone(),
            DataType::FixedSizeList(Arc::new(Field::new("item", vector, true)), 2),
            DataType::Dictionary(
                Box::new(DataType::Int16),
                Box::new(DataType::Timestamp(TimeUnit::Second, None)),
            ),
        ];
        for data_type in types {
            let name = logical_from_data_type(&data_type).unwrap();
            assert_eq!(data_type_from_logical(&name).unwrap(), data_type, "{name}");
        }
    }

    #[test]
    fn test_names_that_stand_for_nothing_are_refused() {
        for name in [
            "",
            "int7",
            "decimal:128:99:0",
            "fixed_size_list:int32",
            "time32:ns",
            "dict:string:float:false",
            "map",
        ] {
            assert!(data_type_from_logical(name).is_err(), "{name}");
        }
    }
}
