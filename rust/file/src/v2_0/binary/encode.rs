//! Writing strings: end offsets with nulls folded in, then the arrays' own bytes.

use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::types::{BinaryType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{Array, ArrayRef, GenericByteArray};
use arrow_schema::DataType;
use bytes::Bytes;
use esker_codec::ends::{encode_ends, Offset};
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::array_encoding::ArrayEncoding as Kind;

use crate::error::{FileError, Result};
use crate::nulls::hides_bytes;
use crate::v2_0::compression::Compression;
use crate::v2_0::encode::{encoding, share, PageBuffers};
use crate::v2_0::flat::encode::flat;
use crate::v2_0::nullable::encode::wrap;

/// Encodes strings or binary.
///
/// With a compression the bytes of all values are compressed as one.
pub(crate) fn encode(
    arrays: &[ArrayRef],
    data_type: &DataType,
    compression: Option<Compression>,
    out: &mut PageBuffers,
) -> Result<pb::ArrayEncoding> {
    match data_type {
        DataType::Utf8 => encode_as::<Utf8Type>(arrays, compression, out),
        DataType::LargeUtf8 => encode_as::<LargeUtf8Type>(arrays, compression, out),
        DataType::Binary => encode_as::<BinaryType>(arrays, compression, out),
        DataType::LargeBinary => encode_as::<LargeBinaryType>(arrays, compression, out),
        other => Err(FileError::invalid(format!("expected strings or binary, found {other}"))),
    }
}

fn extent<T: ByteArrayType>(array: &GenericByteArray<T>) -> (usize, usize)
where
    T::Offset: Offset,
{
    let to_usize = |offset: Option<&T::Offset>| offset.map_or(0, |o| usize::try_from(o.to_u64()).unwrap_or(0));
    (
        to_usize(array.value_offsets().first()),
        to_usize(array.value_offsets().last()),
    )
}

/// The same values, where no null spans bytes: those would go to the file, and nobody should read them there.
fn without_hidden<T: ByteArrayType>(array: &GenericByteArray<T>) -> GenericByteArray<T> {
    if hides_bytes(array) {
        array.iter().collect()
    } else {
        array.clone()
    }
}

fn encode_as<T: ByteArrayType>(
    arrays: &[ArrayRef],
    compression: Option<Compression>,
    out: &mut PageBuffers,
) -> Result<pb::ArrayEncoding>
where
    T::Offset: Offset,
{
    let arrays: Vec<GenericByteArray<T>> = arrays.iter().map(|a| without_hidden(a.as_bytes::<T>())).collect();
    let total: u64 = arrays
        .iter()
        .map(|a| extent(a))
        .map(|(start, end)| (end - start) as u64)
        .sum();
    let null_adjustment = total.saturating_add(1);
    let mut ends = Vec::with_capacity(arrays.iter().map(|a| a.len()).sum::<usize>().saturating_mul(8));
    let mut pieces: Vec<Bytes> = Vec::with_capacity(arrays.len());
    let mut end = 0;
    for array in &arrays {
        let is_valid = |index: usize| array.is_valid(index);
        let is_valid: Option<&dyn Fn(usize) -> bool> = if array.null_count() > 0 { Some(&is_valid) } else { None };
        end = encode_ends(array.value_offsets(), end, null_adjustment, is_valid, &mut ends);
        let (start, stop) = extent(array);
        if stop > start {
            pieces.push(share(array.values().slice_with_length(start, stop - start)));
        }
    }
    let indices = flat(64, out.add(vec![Bytes::from(ends)]));
    let bytes = encode_bytes(pieces, compression, out)?;
    Ok(encoding(Kind::Binary(Box::new(pb::Binary {
        indices: Some(Box::new(wrap(None, indices))),
        bytes: Some(Box::new(bytes)),
        null_adjustment,
    }))))
}

fn encode_bytes(
    pieces: Vec<Bytes>,
    compression: Option<Compression>,
    out: &mut PageBuffers,
) -> Result<pb::ArrayEncoding> {
    let Some(compression) = compression else {
        return Ok(flat(8, out.add(pieces)));
    };
    match compression.compress(&pieces.concat())? {
        None => Ok(flat(8, out.add(pieces))),
        Some((compressed, compression)) => Ok(encoding(Kind::Flat(pb::Flat {
            bits_per_value: 8,
            buffer: Some(out.add(vec![Bytes::from(compressed)])),
            compression: Some(compression),
        }))),
    }
}
