//! What 2.1 and 2.2 files cannot hold.

use arrow_schema::DataType;

use super::path::leaves;
use crate::error::{FileError, Result};
use crate::schema::{Field, Schema};
use crate::version::FileVersion;

/// Refuses what the version cannot hold, before any byte is written.
pub(crate) fn check_schema(schema: &Schema, version: FileVersion) -> Result<()> {
    schema.fields.iter().try_for_each(|field| {
        check_field(field, &field.name, version)?;
        leaves(field).map(|_| ())
    })
}

fn check_field(field: &Field, path: &str, version: FileVersion) -> Result<()> {
    let data_type = field.data_type()?;
    let refuse = |why: &str| {
        Err(FileError::UnsupportedColumn {
            column: path.to_string(),
            data_type: data_type.to_string(),
            version,
            what: why.to_string(),
        })
    };
    match &data_type {
        DataType::FixedSizeList(_, 0) | DataType::FixedSizeBinary(0) => return refuse("fixed-width values of width 0"),
        DataType::FixedSizeList(item, _) if !is_fixed_width(item.data_type()) => {
            return refuse("a fixed_size_list of anything but fixed-width values; use list");
        }
        DataType::Interval(_) => return refuse("intervals; use a duration, or a struct of numbers"),
        _ => {}
    }
    if field.is_blob() {
        return refuse("blobs yet; leave out lance-encoding:blob");
    }
    let mut children = field.children.iter();
    children.try_for_each(|child| check_field(child, &format!("{path}.{}", child.name), version))
}

fn is_fixed_width(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeList(item, _) => is_fixed_width(item.data_type()),
        DataType::Boolean | DataType::FixedSizeBinary(_) => true,
        other => other.is_primitive(),
    }
}
