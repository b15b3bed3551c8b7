//! Reading blob columns: the descriptions, and the bytes where they are wanted.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType;
use esker_proto::lance::encodings::column_encoding::ColumnEncoding as Kind;

use crate::blob::{fetch_array, locate, Home};
use crate::container::{ColumnMeta, Container};
use crate::error::{FileError, Result};
use crate::schema::{description_type, BlobKind, BlobView};
use crate::v2_0::read::read_leaf;

/// The position that stands for a null, together with size 0.
const NULL_POSITION: u64 = 1;

/// Reads `rows` of a blob column in the form asked for.
pub(crate) async fn read(file: &Container, column: usize, view: BlobView, rows: &[Range<u64>]) -> Result<ArrayRef> {
    let meta = file.column(column)?;
    if !holds_descriptions(&meta) {
        return match view {
            BlobView::Bytes => read_leaf(file, column, &DataType::LargeBinary, rows).await,
            _ => Err(FileError::unsupported(format!(
                "file {}, column {column}: the column is marked as blobs, but the file holds plain values; read them as bytes",
                file.path()
            ))),
        };
    }
    let descriptions = read_leaf(file, column, &description_type(BlobKind::V1), rows).await?;
    if view == BlobView::Descriptions {
        return Ok(descriptions);
    }
    let descriptions = with_nulls(&descriptions)?;
    if view == BlobView::Located {
        return Ok(descriptions);
    }
    let home = Home {
        path: file.path(),
        size: file.size(),
    };
    fetch_array(file.store(), &locate(home, BlobKind::V1, &descriptions)?).await
}

/// True for a column whose pages hold descriptions.
pub(crate) fn holds_descriptions(meta: &ColumnMeta) -> bool {
    matches!(
        meta.encoding.as_ref().and_then(|e| e.column_encoding.as_ref()),
        Some(Kind::Blob(_))
    )
}

/// The descriptions with a null where one says that the value is null.
fn with_nulls(descriptions: &ArrayRef) -> Result<ArrayRef> {
    let wrong = || FileError::invalid("expected descriptions of a position and a size, found other values");
    let fields = descriptions.as_struct_opt().ok_or_else(wrong)?;
    let [positions, sizes] = fields.columns() else {
        return Err(wrong());
    };
    let numbers = |array: &ArrayRef| array.as_primitive_opt::<UInt64Type>().map(|a| a.values().clone());
    let (positions, sizes) = numbers(positions).zip(numbers(sizes)).ok_or_else(wrong)?;
    let there = positions
        .iter()
        .zip(sizes.iter())
        .map(|(position, size)| *position != NULL_POSITION || *size != 0);
    let nulls = NullBuffer::new(BooleanBuffer::from_iter(there));
    let nulls = NullBuffer::union(Some(&nulls), fields.nulls());
    let array = StructArray::try_new(fields.fields().clone(), fields.columns().to_vec(), nulls)
        .map_err(|e| FileError::invalid(e.to_string()))?;
    Ok(Arc::new(array))
}
