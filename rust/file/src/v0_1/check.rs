//! What a 0.1 file cannot hold.

use arrow_schema::DataType;

use super::plain::decode::flatten;
use crate::error::{FileError, Result};
use crate::schema::{Field, Schema};
use crate::v2_0::flat::decode::byte_width;
use crate::version::FileVersion;

/// Refuses what the version cannot hold, before any byte is written.
pub(crate) fn check_schema(schema: &Schema) -> Result<()> {
    schema
        .fields
        .iter()
        .try_for_each(|field| check_field(field, &field.name))
}

fn check_field(field: &Field, path: &str) -> Result<()> {
    let refuse = |data_type: String, why: &str| {
        Err(FileError::UnsupportedColumn {
            column: path.to_string(),
            data_type,
            version: FileVersion::V0_1,
            what: why.to_string(),
        })
    };
    if field.is_blob() {
        return refuse(
            field.logical_type.clone(),
            "blobs; leave out lance-encoding:blob, or use data_storage_version 2.0",
        );
    }
    let data_type = field.data_type()?;
    let why = match &data_type {
        DataType::Struct(fields) if fields.is_empty() => Some("structs without fields"),
        DataType::FixedSizeBinary(0) | DataType::FixedSizeList(_, 0) => Some("fixed-width values of width 0"),
        DataType::FixedSizeList(_, _) if flatten(&data_type).is_none() => {
            Some("a fixed_size_list of anything but fixed-width values; use list")
        }
        DataType::Dictionary(_, value) if !is_dictionary_value(value) => {
            Some("a dictionary of anything but strings, binary, integers and floats; use plain values")
        }
        DataType::Map(_, _) => Some("maps; store them as lists of structs, or use data_storage_version 2.2"),
        DataType::Null
        | DataType::Boolean
        | DataType::Struct(_)
        | DataType::List(_)
        | DataType::LargeList(_)
        | DataType::Dictionary(_, _)
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Binary
        | DataType::LargeBinary => None,
        other if flatten(other).is_some() => None,
        _ => Some("values of that type"),
    };
    if let Some(why) = why {
        return refuse(data_type.to_string(), why);
    }
    field
        .children
        .iter()
        .try_for_each(|child| check_field(child, &format!("{path}.{}", child.name)))
}

fn is_dictionary_value(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(
            data_type,
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::Float32
                | DataType::Float64
        ) && byte_width(data_type) != Some(0)
}
