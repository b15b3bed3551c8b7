//! Values of one width in whichever encoding they are kept: as they are, compressed, or with fewer bits.

use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::array_encoding::ArrayEncoding as Kind;

use super::flat::decode::{byte_width, compression, fetch_bytes};
use super::page::{count, length, PageContext, Rows};
use super::{bitpacked, bitpacked_for_non_neg};
use crate::error::{FileError, Result};

/// The encodings that hold values of one width without nulls.
#[derive(Clone, Copy)]
pub(crate) enum FixedWidth<'a> {
    Flat(&'a pb::Flat),
    Bitpacked(&'a pb::Bitpacked),
    BitpackedForNonNeg(&'a pb::BitpackedForNonNeg),
}

impl<'a> FixedWidth<'a> {
    /// What lies below a nullable that has no nulls, as end offsets, bytes and dictionary keys are stored.
    pub(crate) fn of(page: &PageContext<'_>, encoding: Option<&'a pb::ArrayEncoding>, what: &str) -> Result<Self> {
        let mut encoding = encoding;
        loop {
            match encoding.and_then(|e| e.array_encoding.as_ref()) {
                Some(Kind::Flat(flat)) => return Ok(FixedWidth::Flat(flat)),
                Some(Kind::Bitpacked(packed)) => return Ok(FixedWidth::Bitpacked(packed)),
                Some(Kind::BitpackedForNonNeg(packed)) => return Ok(FixedWidth::BitpackedForNonNeg(packed)),
                Some(Kind::Nullable(nullable)) => match nullable.nullability.as_ref() {
                    Some(pb::nullable::Nullability::NoNulls(no_nulls)) => encoding = no_nulls.values.as_deref(),
                    _ => return Err(page.corrupt(format!("expected {what} without nulls, found nulls"))),
                },
                Some(_) => {
                    return Err(FileError::unsupported(format!(
                        "file {}: {what} in encoding {} cannot be read yet; a newer esker may read it",
                        page.file.path(),
                        super::decode::describe(encoding)
                    )))
                }
                None => return Err(page.corrupt(format!("expected an encoding for {what}, found none"))),
            }
        }
    }

    /// Bits that a value takes once it is unpacked.
    pub(crate) fn bits(self) -> u64 {
        match self {
            FixedWidth::Flat(flat) => flat.bits_per_value,
            FixedWidth::Bitpacked(packed) => packed.uncompressed_bits_per_value,
            FixedWidth::BitpackedForNonNeg(packed) => packed.uncompressed_bits_per_value,
        }
    }

    /// The buffer, if its bytes are the values.
    pub(crate) fn plain_buffer(self) -> Option<&'a pb::Buffer> {
        match self {
            FixedWidth::Flat(flat) if compression(flat).is_none() => flat.buffer.as_ref(),
            _ => None,
        }
    }

    /// The values of `rows`, which must have `bits` bits each: whole bytes.
    pub(crate) async fn fetch(self, page: &PageContext<'_>, rows: Rows<'_>, bits: u64, what: &str) -> Result<Buffer> {
        if self.bits() != bits {
            return Err(page.corrupt(format!("expected {what} of {bits} bits, found {} bits", self.bits())));
        }
        match self {
            FixedWidth::Flat(flat) => fetch_bytes(page, flat, rows, bits / 8).await,
            FixedWidth::Bitpacked(packed) => bitpacked::decode::fetch(page, packed, rows).await,
            FixedWidth::BitpackedForNonNeg(packed) => bitpacked_for_non_neg::decode::fetch(page, packed, rows).await,
        }
    }

    /// The values of `rows` as an array of a fixed-width type other than bool.
    pub(crate) async fn decode(
        self,
        page: &PageContext<'_>,
        data_type: &DataType,
        rows: Rows<'_>,
    ) -> Result<ArrayData> {
        let width = byte_width(data_type).ok_or_else(|| {
            page.corrupt(format!(
                "expected a fixed-width type for values of one width, found {data_type}"
            ))
        })?;
        let what = format!("values of type {data_type}");
        let values = self.fetch(page, rows, width.saturating_mul(8), &what).await?;
        ArrayData::builder(data_type.clone())
            .len(length(count(rows))?)
            .add_buffer(values)
            .align_buffers(true)
            .build()
            .map_err(|e| page.corrupt(e))
    }
}
