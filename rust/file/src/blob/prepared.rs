//! Prepared blobs: a column that says where the bytes of its blobs lie, since the caller wrote them beside the data file beforehand.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, LargeBinaryArray, PrimitiveArray, StringArray, StructArray};
use arrow_schema::DataType;

use super::describe::Descriptions;
use super::location::{DEDICATED, EXTERNAL, INLINE, PACKED};
use super::write::{value, wrong};
use crate::container::ContainerWriter;
use crate::error::{FileError, Result};
use crate::schema::{BlobKind, Field};

/// Whether a type is that of prepared blobs.
pub(super) fn is_prepared(data_type: &DataType) -> bool {
    let DataType::Struct(fields) = data_type else {
        return false;
    };
    let wanted = [
        ("kind", DataType::UInt8),
        ("data", DataType::LargeBinary),
        ("uri", DataType::Utf8),
        ("blob_id", DataType::UInt32),
        ("blob_size", DataType::UInt64),
        ("position", DataType::UInt64),
    ];
    let found = fields.iter().map(|field| (field.name().as_str(), field.data_type()));
    found.eq(wanted.iter().map(|(name, data_type)| (*name, data_type)))
}

/// Whether a column, or one within it, is of prepared blobs.
pub(super) fn has_prepared(field: &Field) -> bool {
    match field.blob_kind() {
        Some(_) => field.data_type().is_ok_and(|data_type| is_prepared(&data_type)),
        None => field.children.iter().any(has_prepared),
    }
}

/// The columns of prepared blobs.
struct Prepared<'a> {
    kinds: &'a PrimitiveArray<UInt8Type>,
    data: &'a LargeBinaryArray,
    uris: &'a StringArray,
    ids: &'a PrimitiveArray<UInt32Type>,
    sizes: &'a PrimitiveArray<UInt64Type>,
    positions: &'a PrimitiveArray<UInt64Type>,
}

impl<'a> Prepared<'a> {
    fn of(array: &'a StructArray) -> Option<Self> {
        let [kinds, data, uris, ids, sizes, positions] = array.columns() else {
            return None;
        };
        Some(Prepared {
            kinds: kinds.as_primitive_opt()?,
            data: data.as_binary_opt()?,
            uris: uris.as_string_opt()?,
            ids: ids.as_primitive_opt()?,
            sizes: sizes.as_primitive_opt()?,
            positions: positions.as_primitive_opt()?,
        })
    }

    /// The number of a file beside the data file.
    fn id(&self, row: usize) -> Option<u32> {
        number(self.ids, row).filter(|id| *id > 0)
    }
}

fn number<T: arrow_array::ArrowPrimitiveType>(numbers: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    numbers.is_valid(row).then(|| numbers.value(row))
}

/// The descriptions of prepared blobs; bytes that they bring go into the data file, however many they are.
pub(super) async fn describe(out: &mut ContainerWriter, field: &Field, array: &ArrayRef) -> Result<ArrayRef> {
    let rows = array.as_struct_opt();
    let (Some(rows), Some(prepared)) = (rows, rows.and_then(Prepared::of)) else {
        return Err(FileError::invalid(format!(
            "column '{}': expected prepared blobs, found {}",
            field.name,
            array.data_type()
        )));
    };
    let mut descriptions = Descriptions::default();
    for row in 0..rows.len() {
        let invalid = |expected: &str| {
            FileError::invalid(format!(
                "column '{}': expected {expected}, found none in row {row} of a batch",
                field.name
            ))
        };
        if rows.is_null(row) {
            descriptions.push(INLINE, 0, 0, 0, "");
            continue;
        }
        let size = number(prepared.sizes, row);
        let position = number(prepared.positions, row);
        match number(prepared.kinds, row) {
            Some(INLINE) => {
                let bytes = value(prepared.data, row)
                    .ok_or_else(|| invalid("data for a prepared blob of kind 0 (within the data file)"))?;
                let size = bytes.len() as u64;
                let position = match size {
                    0 => 0,
                    _ => out.write_payload(bytes).await?,
                };
                descriptions.push(INLINE, position, size, 0, "");
            }
            Some(PACKED) => {
                let (Some(id), Some(size), Some(position)) = (prepared.id(row), size, position) else {
                    return Err(invalid(
                        "blob_id above 0, blob_size and position for a prepared blob of kind 1 (packed)",
                    ));
                };
                check_end(field, row, position, size)?;
                descriptions.push(PACKED, position, size, id, "");
            }
            Some(DEDICATED) => {
                let (Some(id), Some(size)) = (prepared.id(row), size) else {
                    return Err(invalid(
                        "blob_id above 0 and blob_size for a prepared blob of kind 2 (a file of its own)",
                    ));
                };
                descriptions.push(DEDICATED, 0, size, id, "");
            }
            Some(EXTERNAL) => {
                let uri = prepared.uris.is_valid(row).then(|| prepared.uris.value(row));
                let uri = uri.filter(|uri| !uri.is_empty());
                let uri = uri.ok_or_else(|| invalid("uri for a prepared blob of kind 3 (elsewhere)"))?;
                let (position, size) = (position.unwrap_or(0), size.unwrap_or(0));
                check_end(field, row, position, size)?;
                descriptions.push(EXTERNAL, position, size, number(prepared.ids, row).unwrap_or(0), uri);
            }
            Some(other) => {
                return Err(FileError::invalid(format!(
                    "column '{}': expected a prepared blob of kind 0 to 3, found {other} in row {row} of a batch",
                    field.name
                )))
            }
            None => return Err(invalid("kind for a prepared blob that is not null")),
        }
    }
    let columns = descriptions.columns();
    let array = StructArray::try_new(BlobKind::V2.description().clone(), columns, rows.nulls().cloned());
    Ok(Arc::new(array.map_err(wrong(field))?))
}

fn check_end(field: &Field, row: usize, position: u64, size: u64) -> Result<()> {
    match position.checked_add(size) {
        Some(_) => Ok(()),
        None => Err(FileError::invalid(format!(
            "column '{}': expected a prepared blob that ends before 2^64, found {size} bytes at {position} in row {row} of a batch",
            field.name
        ))),
    }
}
