//! Writing packed structs: fields of fixed width, put together row by row.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use bytes::Bytes;
use esker_codec::packed_rows::scatter_field;
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::array_encoding::ArrayEncoding as Kind;

use super::decode::packed_width;
use crate::error::{FileError, Result};
use crate::v2_0::encode::{encoding, PageBuffers};
use crate::v2_0::flat::encode::fixed_width_bytes;
use crate::v2_0::nullable::encode::wrap;

/// Encodes packed structs; the buffer is the page's only one.
pub(crate) fn encode(column: &str, arrays: &[ArrayRef], out: &mut PageBuffers) -> Result<pb::ArrayEncoding> {
    let mut pieces = Vec::with_capacity(arrays.len());
    let mut inner = Vec::new();
    for array in arrays {
        refuse_nulls(column, array)?;
        let array = array.as_struct();
        let widths = widths_of(column, array.columns())?;
        let row_width: usize = widths.iter().sum();
        let mut rows = vec![0; row_width.saturating_mul(array.len())];
        let mut at = 0;
        for (field, width) in array.columns().iter().zip(&widths) {
            refuse_nulls(column, field)?;
            let values = leaf_bytes(field, *width)?;
            scatter_field(values.as_slice(), *width, &mut rows, row_width, at);
            at += width;
        }
        pieces.push(Bytes::from(rows));
        if inner.is_empty() {
            inner = array
                .columns()
                .iter()
                .map(|field| describe_field(field.data_type()))
                .collect();
        }
    }
    let buffer = out.add(pieces);
    Ok(encoding(Kind::PackedStruct(pb::PackedStruct {
        inner,
        buffer: Some(buffer),
    })))
}

fn widths_of(column: &str, fields: &[ArrayRef]) -> Result<Vec<usize>> {
    fields
        .iter()
        .map(|field| {
            packed_width(field.data_type()).and_then(|width| usize::try_from(width).ok()).ok_or_else(|| {
                FileError::unsupported(format!(
                    "column '{column}': a packed struct holds fields of fixed width only, found {}; file version 2.2 can hold others, or leave it unpacked",
                    field.data_type()
                ))
            })
        })
        .collect()
}

fn refuse_nulls(column: &str, field: &ArrayRef) -> Result<()> {
    let inner_nulls = match field.data_type() {
        DataType::FixedSizeList(_, _) => field.as_fixed_size_list().values().null_count(),
        _ => 0,
    };
    if field.null_count() + inner_nulls > 0 {
        return Err(FileError::unsupported(format!(
            "column '{column}': file version 2.0 cannot hold nulls of or in a packed struct; fill them"
        )));
    }
    Ok(())
}

fn leaf_bytes(array: &ArrayRef, width: usize) -> Result<arrow_buffer::Buffer> {
    match array.data_type() {
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or(0).max(1);
            leaf_bytes(
                array.as_fixed_size_list().values(),
                width.checked_div(size).unwrap_or(0),
            )
        }
        _ => fixed_width_bytes(array, width as u64),
    }
}

/// How a packed field would be encoded on its own; only the struct's buffer exists.
fn describe_field(data_type: &DataType) -> pb::ArrayEncoding {
    let values = match data_type {
        DataType::FixedSizeList(item, size) => encoding(Kind::FixedSizeList(Box::new(pb::FixedSizeList {
            dimension: u32::try_from(*size).unwrap_or(0),
            items: Some(Box::new(describe_field(item.data_type()))),
            has_validity: false,
        }))),
        other => {
            let bits = packed_width(other).unwrap_or(0).saturating_mul(8);
            let buffer = pb::Buffer {
                buffer_index: 0,
                buffer_type: pb::buffer::BufferType::Page.into(),
            };
            encoding(Kind::Flat(pb::Flat {
                bits_per_value: bits,
                buffer: Some(buffer),
                compression: None,
            }))
        }
    };
    wrap(None, values)
}
