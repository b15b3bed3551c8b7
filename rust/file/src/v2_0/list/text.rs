//! Strings and binary as lists of bytes: a column of end offsets, the bytes in the column behind it.
//!
//! Files from before version 2.0 was final have them; no current writer does.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt8Type;
use arrow_array::{make_array, Array, ArrayRef, GenericListArray, OffsetSizeTrait};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};
use esker_codec::ends::Offset;
use esker_proto::lance::encodings::array_encoding::ArrayEncoding as Kind;
use futures::future::BoxFuture;
use futures::FutureExt;

use super::decode::read_extents;
use crate::container::{ColumnMeta, Container, PageEncoding};
use crate::error::{FileError, Result};
use crate::v2_0::read::read_leaf;

/// True for a column whose pages are those of lists.
pub(crate) fn holds_lists(meta: &ColumnMeta) -> bool {
    meta.pages.first().is_some_and(|page| match &page.encoding {
        PageEncoding::V2_0(encoding) => matches!(encoding.array_encoding, Some(Kind::List(_))),
        _ => false,
    })
}

/// True for the types that such a column may hold.
pub(crate) fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary
    )
}

/// Reads `rows` strings or binaries of a column of lists.
pub(crate) fn read<'a>(
    file: &'a Container,
    column: usize,
    data_type: &'a DataType,
    rows: &'a [Range<u64>],
) -> BoxFuture<'a, Result<ArrayRef>> {
    async move {
        match data_type {
            DataType::LargeUtf8 | DataType::LargeBinary => read_as::<i64>(file, column, data_type, rows).await,
            _ => read_as::<i32>(file, column, data_type, rows).await,
        }
    }
    .boxed()
}

async fn read_as<O: Offset + OffsetSizeTrait>(
    file: &Container,
    column: usize,
    data_type: &DataType,
    rows: &[Range<u64>],
) -> Result<ArrayRef> {
    let meta = file.column(column)?;
    let extents = read_extents::<O>(file, column, &meta, rows).await?;
    let bytes = if extents.items.is_empty() {
        None
    } else {
        Some(read_leaf(file, column.saturating_add(1), &DataType::UInt8, &extents.items).await?)
    };
    let item = std::sync::Arc::new(Field::new("item", DataType::UInt8, true));
    let list = extents.finish(file, column, &item, bytes)?;
    let list: &GenericListArray<O> = list.as_list();
    let corrupt = |message: String| FileError::corrupt(file.path(), format!("column {column}: {message}"));
    let bytes = list.values().as_primitive::<UInt8Type>();
    if bytes.null_count() > 0 {
        return Err(corrupt(
            "expected the bytes of strings without nulls, found nulls".into(),
        ));
    }
    ArrayData::builder(data_type.clone())
        .len(list.len())
        .add_buffer(list.offsets().inner().inner().clone())
        .add_buffer(bytes.values().inner().clone())
        .nulls(list.nulls().cloned())
        .build()
        .map(make_array)
        .map_err(|e| corrupt(e.to_string()))
}
