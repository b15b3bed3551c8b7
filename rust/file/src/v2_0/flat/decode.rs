//! Reading flat values: one read a run of rows, no copy for a single run.

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, Buffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use esker_codec::general;
use esker_proto::lance::encodings as pb;

use crate::error::Result;
use crate::v2_0::fixed_width::FixedWidth;
use crate::v2_0::page::{count, length, PageContext, Rows};

/// Bytes a value of a fixed-width type takes; none for bool and for types without a fixed width.
pub(crate) fn byte_width(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::FixedSizeBinary(width) => u64::try_from(*width).ok(),
        other => other.primitive_width().map(|width| width as u64),
    }
}

/// How the buffer is compressed; nothing for one that is not, which some writers say in so many words.
pub(crate) fn compression(flat: &pb::Flat) -> Option<&pb::Compression> {
    flat.compression.as_ref().filter(|c| c.scheme != "none")
}

/// Decodes `rows` of a flat buffer as `data_type`.
pub(crate) async fn decode(
    page: &PageContext<'_>,
    flat: &pb::Flat,
    data_type: &DataType,
    rows: Rows<'_>,
) -> Result<ArrayData> {
    let num_values = length(count(rows))?;
    match data_type {
        DataType::Null => Ok(ArrayData::new_null(data_type, num_values)),
        DataType::Boolean => {
            let bits = fetch_bits(page, flat, rows, "values of type bool").await?;
            let offset = bits.offset();
            ArrayData::builder(data_type.clone())
                .len(num_values)
                .offset(offset)
                .add_buffer(bits.into_inner())
                .build()
                .map_err(|e| page.corrupt(e))
        }
        _ => FixedWidth::Flat(flat).decode(page, data_type, rows).await,
    }
}

/// The bits of `rows` of 1 bit each.
pub(crate) async fn fetch_bits(
    page: &PageContext<'_>,
    flat: &pb::Flat,
    rows: Rows<'_>,
    what: &str,
) -> Result<BooleanBuffer> {
    if flat.bits_per_value != 1 {
        return Err(page.corrupt(format!(
            "expected {what} of 1 bit each, found {} bits",
            flat.bits_per_value
        )));
    }
    if compression(flat).is_none() {
        return page.fetch_bits(flat.buffer.as_ref(), rows).await;
    }
    let last = rows.iter().map(|r| r.end).max().unwrap_or(0);
    let whole = 0..last.div_ceil(8);
    let bytes = fetch_bytes(page, flat, &[whole], 1).await?;
    let mut bits = BooleanBufferBuilder::new(length(count(rows))?);
    for row in rows {
        let run = BooleanBuffer::new(bytes.clone(), length(row.start)?, length(row.end - row.start)?);
        bits.append_buffer(&run);
    }
    Ok(bits.finish())
}

/// The bytes of `rows` of `width` bytes each.
pub(crate) async fn fetch_bytes(page: &PageContext<'_>, flat: &pb::Flat, rows: Rows<'_>, width: u64) -> Result<Buffer> {
    let ranges = page.byte_ranges(rows, width)?;
    let Some(compression) = compression(flat) else {
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
