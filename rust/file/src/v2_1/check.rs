//! What 2.1 and 2.2 files cannot hold.

use arrow_schema::DataType;

use super::path::{leaves, stride};
use crate::error::{FileError, Result};
use crate::schema::{Field, Schema};
use crate::version::FileVersion;

/// Refuses what the version cannot hold, before any byte is written.
pub(crate) fn check_schema(schema: &Schema, version: FileVersion) -> Result<()> {
    schema.fields.iter().try_for_each(|field| {
        check_field(field, &field.name, version, Around::default())?;
        leaves(field).map(|_| ())
    })?;
    check_lengths(schema, version)
}

/// Columns below a fixed-size list of structs count its items as their rows, and pylance reads no others beside them.
fn check_lengths(schema: &Schema, version: FileVersion) -> Result<()> {
    let mut leaves = schema
        .fields
        .iter()
        .map(leaves)
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .flatten();
    let first = leaves.next().map_or(1, |leaf| stride(&leaf.path));
    match leaves.find(|leaf| stride(&leaf.path) != first) {
        None => Ok(()),
        Some(leaf) => Err(FileError::UnsupportedColumn {
            column: leaf.name,
            data_type: leaf.data_type.to_string(),
            version,
            what: "a fixed_size_list of structs beside columns that are not in one, no version can; use list"
                .to_string(),
        }),
    }
}

/// What a field lies in.
#[derive(Debug, Clone, Copy, Default)]
struct Around {
    list: bool,
    fixed_size_list: bool,
}

fn check_field(field: &Field, path: &str, version: FileVersion, around: Around) -> Result<()> {
    let data_type = field.data_type()?;
    let refuse = |why: &str| {
        Err(FileError::UnsupportedColumn {
            column: path.to_string(),
            data_type: data_type.to_string(),
            version,
            what: why.to_string(),
        })
    };
    let later = version >= FileVersion::V2_2;
    // Pylance looks for one column below the mark, whatever bears it.
    match field.packed_mark() {
        Some(_) if !field.is_struct() && leaves(field)?.len() > 1 => {
            return refuse("a mark as packed on anything but a struct; mark the struct in it");
        }
        // pylance's writer takes other values for true, its reader only "true".
        Some(mark) if field.is_struct() && !mark.eq_ignore_ascii_case(b"true") => {
            return refuse("a mark as packed other than 'true'; say 'true'");
        }
        _ => {}
    }
    let mut below = around;
    match &data_type {
        DataType::FixedSizeList(_, 0) | DataType::FixedSizeBinary(0) => return refuse("fixed-width values of width 0"),
        DataType::FixedSizeList(item, _) if matches!(item.data_type(), DataType::Struct(_)) => {
            if !later {
                return refuse("a fixed_size_list of structs, version 2.2 can; use list");
            }
            if around.list || around.fixed_size_list {
                return refuse("a fixed_size_list of structs below a list, no version can; use list for both");
            }
            below.fixed_size_list = true;
        }
        DataType::FixedSizeList(item, _) if !is_item(item.data_type()) => {
            return refuse("a fixed_size_list of anything but fixed-width values and structs; use list");
        }
        DataType::Map(_, _) if !later => return refuse("a map, version 2.2 can; store it as a list of structs"),
        DataType::List(_) | DataType::LargeList(_) | DataType::Map(_, _) => {
            if around.fixed_size_list {
                return refuse("a list below a fixed_size_list of structs, no version can; use list for both");
            }
            below.list = true;
        }
        DataType::Dictionary(_, value) if !is_dictionary_value(value) => {
            return refuse("a dictionary of anything but fixed-width values, strings or binary; use plain values");
        }
        DataType::Struct(fields) if fields.is_empty() && (around.list || around.fixed_size_list) => {
            return refuse("structs without fields in a list, no version can; give them a field");
        }
        DataType::Interval(_) => return refuse("intervals; use a duration, or a struct of numbers"),
        _ => {}
    }
    if field.is_blob() {
        return Ok(());
    }
    if field.is_packed_struct() {
        return check_packed(field, path, version);
    }
    let mut children = field.children.iter();
    children.try_for_each(|child| check_field(child, &format!("{path}.{}", child.name), version, below))
}

/// A packed struct's fields lie in one column: those of fixed width in any version, others from 2.2 on.
fn check_packed(field: &Field, path: &str, version: FileVersion) -> Result<()> {
    for child in &field.children {
        let data_type = child.data_type()?;
        let what = match &data_type {
            DataType::FixedSizeBinary(0) => "fixed-width values of width 0",
            DataType::Boolean | DataType::Null => "it in a packed struct; leave the struct unpacked",
            DataType::Utf8 | DataType::Binary | DataType::LargeUtf8 | DataType::LargeBinary
                if version < FileVersion::V2_2 =>
            {
                "it in a packed struct, version 2.2 can; leave the struct unpacked"
            }
            DataType::FixedSizeList(_, size) if *size > 0 && whole_bytes(&data_type) => {
                if version >= FileVersion::V2_2 {
                    continue;
                }
                "it in a packed struct, version 2.2 can; leave the struct unpacked"
            }
            DataType::Utf8 | DataType::Binary | DataType::LargeUtf8 | DataType::LargeBinary => continue,
            DataType::FixedSizeBinary(_) => continue,
            other if other.is_primitive() => continue,
            _ => "it in a packed struct; leave the struct unpacked",
        };
        return Err(FileError::UnsupportedColumn {
            column: format!("{path}.{}", child.name),
            data_type: data_type.to_string(),
            version,
            what: what.to_string(),
        });
    }
    Ok(())
}

fn whole_bytes(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeList(item, _) => whole_bytes(item.data_type()),
        DataType::FixedSizeBinary(_) => true,
        other => other.is_primitive(),
    }
}

/// What a fixed-size list may hold.
fn is_item(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeList(item, _) => is_item(item.data_type()),
        DataType::Null | DataType::Boolean | DataType::FixedSizeBinary(_) => true,
        other => other.is_primitive(),
    }
}

fn is_dictionary_value(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::FixedSizeBinary(_)
            | DataType::Boolean
    ) || data_type.is_primitive()
}
