//! Writing flat values: the arrays' own memory, piece by piece.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::DataType;
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::array_encoding::ArrayEncoding as Kind;

use super::decode::byte_width;
use crate::error::{FileError, Result};
use crate::v2_0::encode::{encoding, share, PageBuffers};

/// A flat encoding of `bits` a value in `buffer`.
pub(crate) fn flat(bits: u64, buffer: pb::Buffer) -> pb::ArrayEncoding {
    encoding(Kind::Flat(pb::Flat {
        bits_per_value: bits,
        buffer: Some(buffer),
        compression: None,
    }))
}

/// Encodes values of one fixed width.
pub(crate) fn encode(arrays: &[ArrayRef], data_type: &DataType, out: &mut PageBuffers) -> Result<pb::ArrayEncoding> {
    if data_type == &DataType::Boolean {
        let mut bits = BooleanBufferBuilder::new(arrays.iter().map(|a| a.len()).sum());
        for array in arrays {
            bits.append_buffer(array.as_boolean().values());
        }
        let buffer = out.add(vec![share(bits.finish().into_inner())]);
        return Ok(flat(1, buffer));
    }
    let width = byte_width(data_type).ok_or_else(|| {
        FileError::unsupported(format!(
            "type {data_type} cannot be written in file version 2.0; cast the column first"
        ))
    })?;
    let pieces = arrays
        .iter()
        .map(|array| fixed_width_bytes(array, width).map(share))
        .collect::<Result<Vec<_>>>()?;
    let buffer = out.add(pieces);
    Ok(flat(width.saturating_mul(8), buffer))
}

/// The memory that holds exactly the array's values.
pub(crate) fn fixed_width_bytes(array: &ArrayRef, width: u64) -> Result<arrow_buffer::Buffer> {
    let data = array.to_data();
    let width = usize::try_from(width).unwrap_or(usize::MAX);
    let start = data.offset().saturating_mul(width);
    let size = data.len().saturating_mul(width);
    let buffer = data.buffers().first().filter(|b| b.len() >= start.saturating_add(size));
    let buffer = buffer.ok_or_else(|| {
        FileError::invalid(format!(
            "expected {size} bytes of {} values, found a shorter buffer",
            data.data_type()
        ))
    })?;
    Ok(buffer.slice_with_length(start, size))
}
