//! What a 2.0 file cannot hold.

use arrow_schema::DataType;

use super::compression::Compression;
use crate::error::{FileError, Result};
use crate::schema::{Field, Schema};
use crate::version::FileVersion;

/// Refuses what the version cannot hold, before any byte is written.
pub(crate) fn check_schema(schema: &Schema) -> Result<()> {
    schema
        .fields
        .iter()
        .try_for_each(|field| check_field(field, &field.name))
}

fn check_field(field: &Field, path: &str) -> Result<()> {
    let data_type = field.data_type()?;
    let refuse = |why: &str| {
        Err(FileError::UnsupportedColumn {
            column: path.to_string(),
            data_type: data_type.to_string(),
            version: FileVersion::V2_0,
            what: why.to_string(),
        })
    };
    match &data_type {
        // Pylance looks for one column below the mark, whatever bears it.
        DataType::List(_) | DataType::LargeList(_) if field.packed_mark().is_some() => {
            return refuse("a mark as packed on anything but a struct; mark the struct in it");
        }
        DataType::FixedSizeList(_, 0) | DataType::FixedSizeBinary(0) => return refuse("fixed-width values of width 0"),
        DataType::Map(_, _) => return refuse("a map, version 2.2 can; store it as a list of structs"),
        DataType::FixedSizeList(item, _) if !is_item(item.data_type()) => {
            return refuse("a fixed_size_list of anything but fixed-width values; use list");
        }
        DataType::Dictionary(_, value) if !is_dictionary_value(value) => {
            return refuse("a dictionary of anything but fixed-width values, strings or binary; use plain values");
        }
        _ => {}
    }
    let is_large = matches!(data_type, DataType::LargeUtf8 | DataType::LargeBinary);
    if is_large && Compression::of(field, &data_type) == Some(Compression::Fsst) {
        return refuse("it in compression fsst; use string or binary, or zstd");
    }
    if field.is_blob() {
        return Ok(());
    }
    field
        .children
        .iter()
        .try_for_each(|child| check_field(child, &format!("{path}.{}", child.name)))
}

/// What a fixed-size list may hold.
fn is_item(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeList(item, _) => is_item(item.data_type()),
        other => other.is_null() || is_fixed_width(other),
    }
}

fn is_fixed_width(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeList(item, _) => is_fixed_width(item.data_type()),
        DataType::Boolean | DataType::FixedSizeBinary(_) => true,
        other => other.is_primitive(),
    }
}

fn is_dictionary_value(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary
    ) || is_fixed_width(data_type)
}
