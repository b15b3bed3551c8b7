//! Column metadata: the pages and buffers of one column, checked against the file's size.

use std::ops::Range;

use bytes::Bytes;
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings21 as pb21;
use esker_proto::lance::file::v2;
use prost::Message;

use crate::error::{FileError, Result};

/// Where a buffer lies in the file: position and size in bytes.
pub type BufferRange = Range<u64>;

/// How a page lays out its values; each file version has its own message.
#[derive(Debug, Clone)]
pub enum PageEncoding {
    /// Version 2.0.
    V2_0(Box<pb::ArrayEncoding>),
    /// Versions 2.1 and 2.2.
    V2_1(Box<pb21::PageLayout>),
    /// A message of another version: its type and bytes.
    Other(String, Bytes),
}

/// One page of a column.
#[derive(Debug, Clone)]
pub struct PageMeta {
    /// Values of the column before this page.
    pub first_value: u64,
    /// Values in this page.
    pub num_values: u64,
    /// The page's buffers.
    pub buffers: Vec<BufferRange>,
    /// How the page lays out its values.
    pub encoding: PageEncoding,
    /// The first top-level row of the page, as its writer noted it.
    pub priority: u64,
}

/// One column of a file.
#[derive(Debug, Clone)]
pub struct ColumnMeta {
    /// The pages in order.
    pub pages: Vec<PageMeta>,
    /// The buffers that belong to the column as a whole.
    pub buffers: Vec<BufferRange>,
    /// The encoding of the column as a whole; `None` if the writer did not set it.
    pub encoding: Option<pb::ColumnEncoding>,
    /// Values in all pages.
    pub num_values: u64,
}

impl ColumnMeta {
    /// Reads the metadata of column `index` of a file of `file_size` bytes.
    pub(crate) fn decode(raw: &[u8], path: &str, index: usize, file_size: u64) -> Result<ColumnMeta> {
        let corrupt = |message: String| FileError::corrupt(path, format!("column {index}: {message}"));
        let proto = v2::ColumnMetadata::decode(raw).map_err(|e| {
            corrupt(format!(
                "expected column metadata, found bytes that do not decode ({e})"
            ))
        })?;
        let mut pages = Vec::with_capacity(proto.pages.len());
        let mut first_value: u64 = 0;
        for (number, page) in proto.pages.into_iter().enumerate() {
            let (encoding_type, encoding) = any_of(page.encoding, &|m| corrupt(format!("page {number}: {m}")))?;
            let buffers = buffers_of(&page.buffer_offsets, &page.buffer_sizes, file_size)
                .map_err(|m| corrupt(format!("page {number}: {m}")))?;
            pages.push(PageMeta {
                first_value,
                num_values: page.length,
                buffers,
                encoding: page_encoding(encoding_type, encoding).map_err(|e| {
                    corrupt(format!(
                        "page {number}: expected an encoding, found bytes that do not decode ({e})"
                    ))
                })?,
                priority: page.priority,
            });
            first_value = first_value
                .checked_add(page.length)
                .ok_or_else(|| corrupt(format!("page {number}: the page lengths add up to more than 2^64")))?;
        }
        let encoding = match proto.encoding {
            Some(encoding) if encoding.location.is_some() => {
                let (_, bytes) = any_of(Some(encoding), &|m| corrupt(m.to_string()))?;
                Some(pb::ColumnEncoding::decode(bytes).map_err(|e| {
                    corrupt(format!(
                        "expected a column encoding, found bytes that do not decode ({e})"
                    ))
                })?)
            }
            _ => None,
        };
        let buffers = buffers_of(&proto.buffer_offsets, &proto.buffer_sizes, file_size).map_err(corrupt)?;
        Ok(ColumnMeta {
            pages,
            buffers,
            encoding,
            num_values: first_value,
        })
    }
}

impl ColumnMeta {
    /// The encoding message of each page, with all that a newer writer may have put into it.
    pub(crate) fn page_messages(raw: &[u8], path: &str, index: usize) -> Result<Vec<Bytes>> {
        let corrupt = |message: String| FileError::corrupt(path, format!("column {index}: {message}"));
        let proto = v2::ColumnMetadata::decode(raw).map_err(|e| {
            corrupt(format!(
                "expected column metadata, found bytes that do not decode ({e})"
            ))
        })?;
        let pages = proto.pages.into_iter().enumerate();
        pages
            .map(|(number, page)| Ok(any_of(page.encoding, &|m| corrupt(format!("page {number}: {m}")))?.1))
            .collect()
    }
}

fn page_encoding(encoding_type: String, bytes: Bytes) -> std::result::Result<PageEncoding, prost::DecodeError> {
    if encoding_type.ends_with("/lance.encodings.ArrayEncoding") {
        return Ok(PageEncoding::V2_0(Box::new(pb::ArrayEncoding::decode(bytes)?)));
    }
    if encoding_type.ends_with("/lance.encodings21.PageLayout") {
        return Ok(PageEncoding::V2_1(Box::new(pb21::PageLayout::decode(bytes)?)));
    }
    Ok(PageEncoding::Other(encoding_type, bytes))
}

fn buffers_of(offsets: &[u64], sizes: &[u64], file_size: u64) -> std::result::Result<Vec<BufferRange>, String> {
    if offsets.len() != sizes.len() {
        return Err(format!(
            "expected as many buffer sizes as positions, found {} and {}",
            sizes.len(),
            offsets.len()
        ));
    }
    offsets
        .iter()
        .zip(sizes)
        .map(|(&start, &size)| match start.checked_add(size) {
            Some(end) if end <= file_size => Ok(start..end),
            _ => Err(format!(
                "expected buffers within the file's {file_size} bytes, found {size} bytes at {start}; the file is cut short or damaged"
            )),
        })
        .collect()
}

/// The message type and bytes of an inline encoding.
fn any_of(encoding: Option<v2::Encoding>, corrupt: &dyn Fn(&str) -> FileError) -> Result<(String, Bytes)> {
    match encoding.and_then(|e| e.location) {
        Some(v2::encoding::Location::Direct(direct)) => {
            let any = AnyMessage::decode(direct.encoding)
                .map_err(|e| corrupt(&format!("expected an encoding message, found bytes that do not decode ({e})")))?;
            Ok((any.type_url, any.value))
        }
        Some(v2::encoding::Location::Indirect(_)) => Err(FileError::unsupported(
            "the file keeps an encoding description apart from its column, which no known writer does; a newer esker may read it",
        )),
        _ => Err(corrupt("expected an encoding, found none")),
    }
}

/// `google.protobuf.Any`, with its bytes shared instead of copied.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnyMessage {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}
