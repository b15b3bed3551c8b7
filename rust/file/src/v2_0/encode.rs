//! Encodes arrays as a page, and decides which encoding a page gets.
//!
//! | the values | the encoding |
//! |---|---|
//! | all null | all_nulls: no bytes |
//! | utf8 with at most 255 distinct values, where that is smaller | dictionary with one byte a row |
//! | other strings and binary | binary; with field metadata compression fsst, or its bytes in zstd or lz4 |
//! | Arrow dictionaries | dictionary with their own key width |
//! | fixed_size_list | nullable(fixed_size_list(nullable(flat))) |
//! | packed struct | packed_struct |
//! | everything else | nullable(flat) |

use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use bytes::Bytes;
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::array_encoding::ArrayEncoding as Kind;

use super::compression::Compression;
use super::{binary, dictionary, fixed_size_list, flat, fsst, nullable, packed_struct};
use crate::error::Result;

/// The buffers of a page while it is encoded, numbered as they come.
#[derive(Debug, Default)]
pub(crate) struct PageBuffers {
    pub(crate) buffers: Vec<Vec<Bytes>>,
}

impl PageBuffers {
    /// Adds a buffer that is already in pieces; pieces are not joined, only written one after the other.
    pub(crate) fn add(&mut self, pieces: Vec<Bytes>) -> pb::Buffer {
        let index = u32::try_from(self.buffers.len()).unwrap_or(u32::MAX);
        self.buffers.push(pieces);
        pb::Buffer {
            buffer_index: index,
            buffer_type: pb::buffer::BufferType::Page.into(),
        }
    }
}

struct SharedBuffer(Buffer);

impl AsRef<[u8]> for SharedBuffer {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

/// Converts a buffer to bytes that share its memory.
pub(crate) fn share(buffer: Buffer) -> Bytes {
    Bytes::from_owner(SharedBuffer(buffer))
}

/// Wraps one kind of encoding.
pub(crate) fn encoding(kind: Kind) -> pb::ArrayEncoding {
    pb::ArrayEncoding {
        array_encoding: Some(kind),
    }
}

/// Encodes the values of one page of one column. The arrays have one type and at least one value between them.
pub(crate) fn encode(
    column: &str,
    arrays: &[ArrayRef],
    data_type: &DataType,
    compression: Option<Compression>,
    out: &mut PageBuffers,
) -> Result<pb::ArrayEncoding> {
    let num_values: usize = arrays.iter().map(|a| a.len()).sum();
    let null_count: usize = arrays.iter().map(|a| a.logical_null_count()).sum();
    let is_text = matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary
    );
    // A packed struct says for itself that it has no nulls.
    let is_struct = matches!(data_type, DataType::Struct(_));
    if null_count == num_values && !is_struct && !(is_text && num_values == 0) {
        return Ok(nullable::encode::all_nulls());
    }
    match data_type {
        DataType::Utf8 => match dictionary::encode::distinct(arrays, num_values) {
            Some(found) => dictionary::encode::encode_strings(&found, out),
            None => encode_text(arrays, data_type, compression, out),
        },
        DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
            encode_text(arrays, data_type, compression, out)
        }
        DataType::Dictionary(_, _) => dictionary::encode::encode_arrow(column, arrays, out),
        DataType::Struct(_) => packed_struct::encode::encode(column, arrays, out),
        _ => encode_nullable(arrays, data_type, null_count, out),
    }
}

fn encode_text(
    arrays: &[ArrayRef],
    data_type: &DataType,
    compression: Option<Compression>,
    out: &mut PageBuffers,
) -> Result<pb::ArrayEncoding> {
    match compression {
        Some(Compression::Fsst) => fsst::encode::encode(arrays, data_type, out),
        compression => binary::encode::encode(arrays, data_type, compression, out),
    }
}

/// Encodes values of fixed width with the validity that they need.
pub(crate) fn encode_nullable(
    arrays: &[ArrayRef],
    data_type: &DataType,
    null_count: usize,
    out: &mut PageBuffers,
) -> Result<pb::ArrayEncoding> {
    let validity = (null_count > 0).then(|| nullable::encode::validity(arrays, out));
    let values = match data_type {
        DataType::FixedSizeList(_, _) => fixed_size_list::encode::encode(arrays, out)?,
        _ => flat::encode::encode(arrays, data_type, out)?,
    };
    Ok(nullable::encode::wrap(validity, values))
}
