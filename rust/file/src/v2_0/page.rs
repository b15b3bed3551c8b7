//! One page of an open file: fetches its bytes, and names it in errors.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, Buffer, MutableBuffer};
use bytes::Bytes;
use esker_codec::CodecError;
use esker_proto::lance::encodings as pb;

use crate::container::{ColumnMeta, Container, PageEncoding, PageMeta};
use crate::error::{FileError, Result};

/// Rows of a page, sorted and apart.
pub(crate) type Rows<'a> = &'a [Range<u64>];

/// How many rows there are in `rows`.
pub(crate) fn count(rows: Rows<'_>) -> u64 {
    rows.iter().map(|r| r.end.saturating_sub(r.start)).sum()
}

/// A number of values as a length in memory.
pub(crate) fn length(values: u64) -> Result<usize> {
    usize::try_from(values).map_err(|_| {
        FileError::invalid(format!(
            "{values} values do not fit in memory; read fewer rows at a time"
        ))
    })
}

/// One page of an open file.
pub(crate) struct PageContext<'a> {
    pub(crate) file: &'a Container,
    pub(crate) column: usize,
    pub(crate) meta: &'a ColumnMeta,
    pub(crate) page: &'a PageMeta,
    pub(crate) number: usize,
}

impl<'a> PageContext<'a> {
    /// An error that says in which page the bytes are wrong.
    pub(crate) fn corrupt(&self, message: impl std::fmt::Display) -> FileError {
        FileError::corrupt(
            self.file.path(),
            format!("column {}, page {}: {message}", self.column, self.number),
        )
    }

    /// A kernel's error, with the page's name where the bytes are to blame.
    pub(crate) fn kernel(&self, error: CodecError) -> FileError {
        match error {
            CodecError::Corrupt(message) => self.corrupt(message),
            CodecError::TooLarge(message) => FileError::invalid(message),
            CodecError::Unsupported(message) => FileError::unsupported(format!(
                "file {}, column {}, page {}: {message}",
                self.file.path(),
                self.column,
                self.number
            )),
        }
    }

    /// An encoding that this release does not read.
    pub(crate) fn unsupported(&self, encoding: &str) -> FileError {
        FileError::unsupported(format!(
            "file {}, column {}, page {}: encoding {encoding} of file version {} cannot be read yet; a newer esker may read it",
            self.file.path(),
            self.column,
            self.number,
            self.file.version()
        ))
    }

    /// How the page lays out its values.
    pub(crate) fn array_encoding(&self) -> Result<&'a pb::ArrayEncoding> {
        let page: &'a PageMeta = self.page;
        let found = match &page.encoding {
            PageEncoding::V2_0(encoding) => return Ok(encoding),
            PageEncoding::V2_1(_) => "one of 2.1",
            PageEncoding::Other(name, _) => name.as_str(),
        };
        Err(self.corrupt(format!("expected an encoding of file version 2.0, found {found}")))
    }

    fn buffer_range(&self, buffer: Option<&pb::Buffer>) -> Result<Range<u64>> {
        let buffer = buffer.ok_or_else(|| self.corrupt("expected the encoding to name a buffer, found none"))?;
        let index = buffer.buffer_index as usize;
        let buffers: &[Range<u64>] = match buffer.buffer_type() {
            pb::buffer::BufferType::Page => &self.page.buffers,
            pb::buffer::BufferType::Column => &self.meta.buffers,
            pb::buffer::BufferType::File => self.file.global_buffers(),
        };
        buffers
            .get(index)
            .cloned()
            .ok_or_else(|| self.corrupt(format!("expected a buffer {index}, found {} buffers", buffers.len())))
    }

    /// A whole buffer.
    pub(crate) async fn fetch_all(&self, buffer: Option<&pb::Buffer>) -> Result<Bytes> {
        let range = self.buffer_range(buffer)?;
        let mut parts = self.file.store().get_ranges(self.file.path(), &[range]).await?;
        Ok(parts.pop().unwrap_or_default())
    }

    /// Byte ranges of one buffer, in order.
    pub(crate) async fn fetch(&self, buffer: Option<&pb::Buffer>, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let whole = self.buffer_range(buffer)?;
        let size = whole.end - whole.start;
        let absolute = ranges
            .iter()
            .map(|range| {
                if range.start > range.end || range.end > size {
                    return Err(self.corrupt(format!(
                        "expected bytes {}..{} of a buffer, found only {size} bytes in it",
                        range.start, range.end
                    )));
                }
                Ok(whole.start + range.start..whole.start + range.end)
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(self.file.store().get_ranges(self.file.path(), &absolute).await?)
    }

    /// Byte ranges of one buffer joined; a single range is not copied.
    pub(crate) async fn fetch_joined(&self, buffer: Option<&pb::Buffer>, ranges: &[Range<u64>]) -> Result<Buffer> {
        let mut parts = self.fetch(buffer, ranges).await?;
        if parts.len() == 1 {
            return Ok(parts.pop().map(Buffer::from).unwrap_or_default());
        }
        let mut joined = MutableBuffer::new(parts.iter().map(Bytes::len).sum());
        for part in &parts {
            joined.extend_from_slice(part);
        }
        Ok(joined.into())
    }

    /// Ranges of bits of one buffer, least significant bit first.
    pub(crate) async fn fetch_bits(&self, buffer: Option<&pb::Buffer>, rows: Rows<'_>) -> Result<BooleanBuffer> {
        let ranges: Vec<Range<u64>> = rows.iter().map(|r| r.start / 8..r.end.div_ceil(8)).collect();
        let mut parts = self.fetch(buffer, &ranges).await?;
        let bit = |row: &Range<u64>| length(row.start % 8);
        if let (1, [row]) = (parts.len(), rows) {
            let buffer = parts.pop().map(Buffer::from).unwrap_or_default();
            return Ok(BooleanBuffer::new(buffer, bit(row)?, length(row.end - row.start)?));
        }
        let mut joined = BooleanBufferBuilder::new(length(count(rows))?);
        for (part, row) in parts.into_iter().zip(rows) {
            joined.append_buffer(&BooleanBuffer::new(
                Buffer::from(part),
                bit(row)?,
                length(row.end - row.start)?,
            ));
        }
        Ok(joined.finish())
    }

    /// Ranges of bytes for rows of `width` bytes each.
    pub(crate) fn byte_ranges(&self, rows: Rows<'_>, width: u64) -> Result<Vec<Range<u64>>> {
        rows.iter()
            .map(|r| {
                r.start
                    .checked_mul(width)
                    .zip(r.end.checked_mul(width))
                    .map(|(start, end)| start..end)
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| {
                self.corrupt(format!(
                    "expected values of {width} bytes within 2^64 bytes, found more"
                ))
            })
    }
}
