//! Reading flat values: one read a run of rows, no copy for a single run.

use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use esker_codec::general;
use esker_proto::lance::encodings as pb;

use crate::error::{FileError, Result};
use crate::v2_0::page::{count, length, PageContext, Rows};

/// Bytes a value of a fixed-width type takes; none for bool and for types without a fixed width.
pub(crate) fn byte_width(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::FixedSizeBinary(width) => u64::try_from(*width).ok(),
        other => other.primitive_width().map(|width| width as u64),
    }
}

/// Decodes `rows` of a flat buffer as `data_type`.
pub(crate) async fn decode(
    page: &PageContext<'_>,
    flat: &pb::Flat,
    data_type: &DataType,
    rows: Rows<'_>,
) -> Result<ArrayData> {
    let num_values = length(count(rows))?;
    let wrong = |expected: u64| {
        page.corrupt(format!(
            "expected values of {expected} bits for type {data_type}, found {} bits",
            flat.bits_per_value
        ))
    };
    let built = match data_type {
        DataType::Null => return Ok(ArrayData::new_null(data_type, num_values)),
        DataType::Boolean => {
            if flat.bits_per_value != 1 {
                return Err(wrong(1));
            }
            let bits = page.fetch_bits(flat.buffer.as_ref(), rows).await?;
            let offset = bits.offset();
            ArrayData::builder(data_type.clone())
                .len(num_values)
                .offset(offset)
                .add_buffer(bits.into_inner())
                .build()
        }
        _ => {
            let width = byte_width(data_type).ok_or_else(|| {
                page.corrupt(format!(
                    "expected a fixed-width type for flat values, found {data_type}"
                ))
            })?;
            if flat.bits_per_value != width.saturating_mul(8) {
                return Err(wrong(width.saturating_mul(8)));
            }
            let values = fetch_bytes(page, flat, rows, width).await?;
            ArrayData::builder(data_type.clone())
                .len(num_values)
                .add_buffer(values)
                .align_buffers(true)
                .build()
        }
    };
    built.map_err(|e| page.corrupt(e))
}

/// The bytes of `rows` of `width` bytes each.
pub(crate) async fn fetch_bytes(page: &PageContext<'_>, flat: &pb::Flat, rows: Rows<'_>, width: u64) -> Result<Buffer> {
    let ranges = page.byte_ranges(rows, width)?;
    let Some(compression) = &flat.compression else {
        return page.fetch_joined(flat.buffer.as_ref(), &ranges).await;
    };
    let compressed = page.fetch_all(flat.buffer.as_ref()).await?;
    let limit = length(ranges.iter().map(|r| r.end).max().unwrap_or(0))?;
    let raw = general::decompress(&compression.scheme, &compressed, limit).map_err(|e| page.kernel(e))?;
    let mut joined = Vec::new();
    for range in &ranges {
        let part = raw.get(length(range.start)?..length(range.end)?).ok_or_else(|| {
            page.corrupt(format!(
                "expected {limit} bytes after decompression, found {}",
                raw.len()
            ))
        })?;
        joined.extend_from_slice(part);
    }
    Ok(Buffer::from_vec(joined))
}

/// The flat encoding below a nullable that has no nulls, as end offsets and bytes are stored.
pub(crate) fn plain<'a>(
    page: &PageContext<'_>,
    encoding: Option<&'a pb::ArrayEncoding>,
    what: &str,
) -> Result<&'a pb::Flat> {
    use pb::array_encoding::ArrayEncoding as Kind;
    match encoding.and_then(|e| e.array_encoding.as_ref()) {
        Some(Kind::Flat(flat)) => Ok(flat),
        Some(Kind::Nullable(nullable)) => match nullable.nullability.as_ref() {
            Some(pb::nullable::Nullability::NoNulls(no_nulls)) => plain(page, no_nulls.values.as_deref(), what),
            _ => Err(page.corrupt(format!("expected {what} without nulls, found nulls"))),
        },
        Some(_) => Err(FileError::unsupported(format!(
            "file {}: {what} in encoding {} cannot be read yet; a newer esker may read it",
            page.file.path(),
            crate::v2_0::decode::describe(encoding)
        ))),
        None => Err(page.corrupt(format!("expected an encoding for {what}, found none"))),
    }
}
