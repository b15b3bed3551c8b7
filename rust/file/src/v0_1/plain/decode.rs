//! Reading values of fixed width: the bytes of the rows and no others.

use std::ops::Range;

use arrow_array::{make_array, ArrayRef};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, Buffer, MutableBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bytes::Bytes;

use crate::error::{FileError, Result};
use crate::v0_1::column::check_length;
use crate::v0_1::page::{count_rows, take_parts, FieldPages, PageRows, Parts};
use crate::v2_0::flat::decode::byte_width;
use crate::v2_0::page::length;

/// The type of the values that lie side by side, and how many of them make one row.
pub(crate) fn flatten(data_type: &DataType) -> Option<(&DataType, u64)> {
    match data_type {
        DataType::FixedSizeList(item, size) => {
            let (leaf, values) = flatten(item.data_type())?;
            Some((leaf, values.checked_mul(u64::try_from(*size).ok()?)?))
        }
        DataType::Boolean => Some((data_type, 1)),
        other => byte_width(other).map(|_| (other, 1)),
    }
}

/// Bits of one row, or nothing where the type has no fixed width.
pub(crate) fn row_bits(data_type: &DataType) -> Option<u64> {
    let (leaf, per_row) = flatten(data_type)?;
    match leaf {
        DataType::Boolean => Some(per_row),
        other => per_row.checked_mul(byte_width(other)?)?.checked_mul(8),
    }
}

/// Values of fixed width while their bytes come in.
#[derive(Debug)]
pub(crate) struct PlainRead<'a> {
    pages: FieldPages<'a>,
    data_type: DataType,
    rows: u64,
    /// Bytes in the file.
    ranges: Vec<Range<u64>>,
    /// For booleans, of each range the bits that count.
    bits: Vec<Range<u64>>,
    parts: Option<Vec<Bytes>>,
}

impl<'a> PlainRead<'a> {
    /// Reads `rows` as values of `data_type`.
    pub(crate) fn new(pages: FieldPages<'a>, data_type: &DataType, rows: &[PageRows]) -> Result<PlainRead<'a>> {
        PlainRead::build(pages, data_type, rows, 0, 0)
    }

    /// Reads the offsets of `rows` lists, and after each run the end of its last one: a list's page counts it.
    pub(crate) fn list_offsets(
        pages: FieldPages<'a>,
        data_type: &DataType,
        rows: &[PageRows],
    ) -> Result<PlainRead<'a>> {
        PlainRead::build(pages, data_type, rows, 1, 1)
    }

    /// Reads the offsets of `rows` strings, and after each run the end of its last one: a string's page does not count it.
    pub(crate) fn string_offsets(pages: FieldPages<'a>, rows: &[PageRows]) -> Result<PlainRead<'a>> {
        PlainRead::build(pages, &DataType::Int64, rows, 1, 0)
    }

    /// Reads after each run of rows `beyond` values more, of which the page's length counts `counted`.
    fn build(
        pages: FieldPages<'a>,
        data_type: &DataType,
        rows: &[PageRows],
        beyond: u64,
        counted: u64,
    ) -> Result<PlainRead<'a>> {
        let (leaf, per_row) = flatten(data_type).ok_or_else(|| {
            FileError::unsupported(format!(
                "file {}, column '{}': a page of {data_type} in file version 0.1 cannot be read",
                pages.path, pages.column
            ))
        })?;
        let is_bits = leaf == &DataType::Boolean;
        let width = byte_width(leaf).unwrap_or(0);
        let (mut ranges, mut bits) = (Vec::new(), Vec::new());
        for of_page in rows {
            let page = pages.page(of_page, counted)?;
            for row in &of_page.rows {
                let scaled = |row: u64, by: u64| row.checked_mul(per_row)?.checked_mul(by);
                let end = row.end.saturating_add(beyond);
                let unit = if is_bits { 1 } else { width };
                let range = scaled(row.start, unit).zip(scaled(end, unit));
                let (start, end) = range.ok_or_else(|| {
                    pages.corrupt(
                        of_page.group,
                        "expected values of a page within 2^64 bytes, found them beyond",
                    )
                })?;
                if is_bits {
                    ranges.push(pages.range(of_page.group, page, start / 8..end.div_ceil(8))?);
                    bits.push(start % 8..start % 8 + (end - start));
                } else {
                    ranges.push(pages.range(of_page.group, page, start..end)?);
                }
            }
        }
        let group = rows.first().map_or(0, |r| r.group);
        pages.check(group, &ranges)?;
        Ok(PlainRead {
            pages,
            data_type: data_type.clone(),
            rows: count_rows(rows),
            ranges,
            bits,
            parts: None,
        })
    }

    pub(crate) fn requests(&self, out: &mut Vec<Range<u64>>) {
        if self.parts.is_none() {
            out.extend_from_slice(&self.ranges);
        }
    }

    pub(crate) fn receive(&mut self, parts: &mut Parts) {
        if self.parts.is_none() {
            self.parts = Some(take_parts(parts, self.ranges.len()));
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.parts.is_some()
    }

    /// Takes the bytes of each run and leaves nothing to finish.
    pub(crate) fn take_runs(&self, parts: &mut Parts) -> Vec<Bytes> {
        take_parts(parts, self.ranges.len())
    }

    pub(crate) fn finish(self) -> Result<ArrayRef> {
        let (leaf, per_row) = flatten(&self.data_type).unwrap_or((&self.data_type, 1));
        let values = length(self.rows.saturating_mul(per_row))?;
        let parts = self.parts.unwrap_or_default();
        let data = if leaf == &DataType::Boolean {
            let bits = join_bits(parts, &self.bits, values)?;
            let offset = bits.offset();
            ArrayData::builder(leaf.clone())
                .len(values)
                .offset(offset)
                .add_buffer(bits.into_inner())
                .build()
        } else {
            ArrayData::builder(leaf.clone())
                .len(values)
                .add_buffer(join(parts))
                .align_buffers(true)
                .build()
        };
        let data = data.map_err(|e| self.pages.corrupt_column(e))?;
        let array = make_array(wrap(&self.data_type, self.rows, data).map_err(|e| self.pages.corrupt_column(e))?);
        check_length(array, self.rows, &self.pages)
    }
}

/// The lists around the values that lie side by side.
fn wrap(
    data_type: &DataType,
    rows: u64,
    values: ArrayData,
) -> std::result::Result<ArrayData, arrow_schema::ArrowError> {
    let DataType::FixedSizeList(item, size) = data_type else {
        return Ok(values);
    };
    let items = rows.saturating_mul(u64::try_from(*size).unwrap_or(0));
    let items = wrap(item.data_type(), items, values)?;
    ArrayData::builder(data_type.clone())
        .len(usize::try_from(rows).unwrap_or(usize::MAX))
        .add_child_data(items)
        .build()
}

/// The parts one after the other; a single one is not copied.
pub(crate) fn join(mut parts: Vec<Bytes>) -> Buffer {
    if parts.len() == 1 {
        return parts.pop().map(Buffer::from).unwrap_or_default();
    }
    let mut joined = MutableBuffer::new(parts.iter().map(Bytes::len).sum());
    for part in &parts {
        joined.extend_from_slice(part);
    }
    joined.into()
}

fn join_bits(mut parts: Vec<Bytes>, bits: &[Range<u64>], values: usize) -> Result<BooleanBuffer> {
    let run = |part: Bytes, bits: &Range<u64>| -> Result<BooleanBuffer> {
        Ok(BooleanBuffer::new(
            Buffer::from(part),
            length(bits.start)?,
            length(bits.end - bits.start)?,
        ))
    };
    if let ([_], [bits]) = (parts.as_slice(), bits) {
        return run(parts.pop().unwrap_or_default(), bits);
    }
    let mut joined = BooleanBufferBuilder::new(values);
    for (part, bits) in parts.into_iter().zip(bits) {
        joined.append_buffer(&run(part, bits)?);
    }
    Ok(joined.finish())
}
