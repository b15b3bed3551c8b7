//! Reading strings: the ends of the rows first, then the bytes between them.

use std::ops::Range;

use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use esker_codec::ends::{decode_ends, decode_validity, real_end, Offset};
use esker_proto::lance::encodings as pb;

use crate::error::Result;
use crate::v2_0::fixed_width::FixedWidth;
use crate::v2_0::page::{count, length, PageContext, Rows};

const END_OFFSETS: &str = "end offsets";
const BYTES: &str = "bytes of strings";

/// The ends of runs of rows, as stored.
pub(crate) struct StoredEnds {
    /// A run: where it starts, and its ends.
    pub(crate) runs: Vec<(u64, Buffer)>,
}

/// Reads the stored ends of `rows`, and for each run where its first value starts.
pub(crate) async fn fetch_ends(
    page: &PageContext<'_>,
    encoding: Option<&pb::ArrayEncoding>,
    null_adjustment: u64,
    rows: Rows<'_>,
) -> Result<StoredEnds> {
    let ends = FixedWidth::of(page, encoding, END_OFFSETS)?;
    // The start of a value is the end of the one before it.
    let wanted: Vec<Range<u64>> = rows.iter().map(|r| r.start.saturating_sub(1)..r.end).collect();
    let stored = fetch_apart(page, ends, &wanted).await?;
    let runs = rows
        .iter()
        .zip(stored)
        .map(|(row, buffer)| {
            if row.start == 0 {
                return Ok((0, buffer));
            }
            let first = buffer.as_slice().first_chunk::<8>().map(|b| u64::from_le_bytes(*b));
            let first = first.ok_or_else(|| page.corrupt("expected an end offset, found no bytes"))?;
            Ok((real_end(first, null_adjustment), buffer.slice(8)))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(StoredEnds { runs })
}

async fn fetch_apart(page: &PageContext<'_>, ends: FixedWidth<'_>, rows: Rows<'_>) -> Result<Vec<Buffer>> {
    if let (Some(buffer), 64) = (ends.plain_buffer(), ends.bits()) {
        let parts = page.fetch(Some(buffer), &page.byte_ranges(rows, 8)?).await?;
        return Ok(parts.into_iter().map(Buffer::from).collect());
    }
    let joined = ends.fetch(page, rows, 64, END_OFFSETS).await?;
    let mut at = 0;
    rows.iter()
        .map(|row| {
            let size = length((row.end - row.start).saturating_mul(8))?;
            let part = joined.slice_with_length(at, size);
            at += size;
            Ok(part)
        })
        .collect()
}

/// Arrow offsets for all runs, the range of bytes or items of each run, and the nulls.
pub(crate) struct Extents<O> {
    pub(crate) offsets: Vec<O>,
    pub(crate) ranges: Vec<Range<u64>>,
    pub(crate) nulls: Option<NullBuffer>,
}

impl StoredEnds {
    /// Turns the runs, which hold `num_values` values, into offsets that start at 0.
    pub(crate) fn decode<O: Offset>(
        &self,
        page: &PageContext<'_>,
        null_adjustment: u64,
        num_values: usize,
    ) -> Result<Extents<O>> {
        let mut offsets = Vec::with_capacity(num_values.saturating_add(1));
        offsets.push(O::default());
        let mut ranges: Vec<Range<u64>> = Vec::with_capacity(self.runs.len());
        let mut any_null = false;
        for (start, stored) in &self.runs {
            let before = offsets.last().copied().unwrap_or_default().to_u64();
            any_null |=
                decode_ends(stored.as_slice(), *start, null_adjustment, &mut offsets).map_err(|e| page.kernel(e))?;
            let after = offsets.last().copied().unwrap_or_default().to_u64();
            let range = *start..start.saturating_add(after.saturating_sub(before));
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ if range.is_empty() => {}
                _ => ranges.push(range),
            }
        }
        if offsets.len() != num_values.saturating_add(1) {
            return Err(page.corrupt(format!(
                "expected {num_values} end offsets, found {}",
                offsets.len() - 1
            )));
        }
        let nulls = any_null.then(|| {
            let mut validity = BooleanBufferBuilder::new(num_values);
            for (_, stored) in &self.runs {
                decode_validity(stored.as_slice(), null_adjustment, |valid| validity.append(valid));
            }
            NullBuffer::new(validity.finish())
        });
        Ok(Extents { offsets, ranges, nulls })
    }
}

/// Decodes `rows` strings or binaries.
pub(crate) async fn decode(
    page: &PageContext<'_>,
    binary: &pb::Binary,
    data_type: &DataType,
    rows: Rows<'_>,
) -> Result<ArrayData> {
    match data_type {
        DataType::Utf8 | DataType::Binary => decode_as::<i32>(page, binary, data_type, rows).await,
        DataType::LargeUtf8 | DataType::LargeBinary => decode_as::<i64>(page, binary, data_type, rows).await,
        other => Err(page.corrupt(format!(
            "expected a string or binary type for encoding binary, found {other}"
        ))),
    }
}

async fn decode_as<O: Offset + ArrowNativeType>(
    page: &PageContext<'_>,
    binary: &pb::Binary,
    data_type: &DataType,
    rows: Rows<'_>,
) -> Result<ArrayData> {
    let num_values = length(count(rows))?;
    let ends = fetch_ends(page, binary.indices.as_deref(), binary.null_adjustment, rows).await?;
    let extents = ends.decode::<O>(page, binary.null_adjustment, num_values)?;
    let stored = FixedWidth::of(page, binary.bytes.as_deref(), BYTES)?;
    let bytes = if extents.ranges.is_empty() {
        Buffer::from_vec(Vec::<u8>::new())
    } else {
        stored.fetch(page, &extents.ranges, 8, BYTES).await?
    };
    ArrayData::builder(data_type.clone())
        .len(num_values)
        .add_buffer(Buffer::from_vec(extents.offsets))
        .add_buffer(bytes)
        .nulls(extents.nulls)
        .build()
        .map_err(|e| page.corrupt(e))
}

/// Decodes `rows` strings or binaries that all have one length.
pub(crate) async fn decode_fixed(
    page: &PageContext<'_>,
    binary: &pb::FixedSizeBinary,
    data_type: &DataType,
    rows: Rows<'_>,
) -> Result<ArrayData> {
    let width = u64::from(binary.byte_width);
    let num_values = length(count(rows))?;
    let stored = FixedWidth::of(page, binary.bytes.as_deref(), BYTES)?;
    // Either the values are of the strings' width, or each byte is a value.
    let bytes = if stored.bits() == 8 {
        stored.fetch(page, &page.byte_ranges(rows, width)?, 8, BYTES).await?
    } else {
        stored.fetch(page, rows, width.saturating_mul(8), BYTES).await?
    };
    let ends = |max: u64| {
        let total = width.saturating_mul(num_values as u64);
        if total > max {
            return Err(crate::error::FileError::invalid(format!(
                "the values of one batch hold {total} bytes; read fewer rows at a time or use a large_ type"
            )));
        }
        Ok((0..=num_values as u64).map(move |n| n * width))
    };
    let offsets = match data_type {
        DataType::Utf8 | DataType::Binary => {
            Buffer::from_vec(ends(i32::MAX as u64)?.map(i32::from_u64).collect::<Vec<_>>())
        }
        DataType::LargeUtf8 | DataType::LargeBinary => {
            Buffer::from_vec(ends(i64::MAX as u64)?.map(i64::from_u64).collect::<Vec<_>>())
        }
        other => return Err(page.corrupt(format!("expected a string or binary type, found {other}"))),
    };
    ArrayData::builder(data_type.clone())
        .len(num_values)
        .add_buffer(offsets)
        .add_buffer(bytes)
        .build()
        .map_err(|e| page.corrupt(e))
}
