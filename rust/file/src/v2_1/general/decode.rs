//! Undoing zstd and lz4: of a chunk's first buffer, of a block, or of each value.

use std::cell::Cell;

use esker_codec::ends::Offset;
use esker_codec::general;
use esker_proto::lance::encodings21 as pb;

use crate::error::Result;
use crate::v2_1::builder::{Values, VariableBuilder};
use crate::v2_1::decode::{Compression, Wanted};
use crate::v2_1::page::PageId;

/// More memory than this is not kept for the next chunk.
const MOST_SCRATCH: usize = 1 << 20;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A scheme, and what it is around.
#[derive(Debug)]
pub(crate) struct General {
    pub(crate) scheme: &'static str,
    pub(crate) values: Compression,
}

impl General {
    /// Reads the description.
    pub(crate) fn new(at: &PageId, general: &pb::General) -> Result<General> {
        let compression = general
            .compression
            .as_ref()
            .ok_or_else(|| at.missing("a compression scheme"))?;
        let scheme = match compression.scheme() {
            pb::CompressionScheme::CompressionAlgorithmLz4 => "lz4",
            pb::CompressionScheme::CompressionAlgorithmZstd => "zstd",
            pb::CompressionScheme::CompressionAlgorithmUnspecified => {
                return Err(at.unsupported(format!(
                    "expected compression zstd or lz4, found scheme {}; a newer esker may read it",
                    compression.scheme
                )))
            }
        };
        let values = Compression::new(at, general.values.as_deref())?;
        Ok(General { scheme, values })
    }

    /// The raw bytes, at most `limit` of them.
    pub(crate) fn decompress(&self, at: &PageId, stored: &[u8], limit: usize) -> Result<Vec<u8>> {
        if stored.is_empty() {
            return Ok(Vec::new());
        }
        general::decompress(self.scheme, stored, limit).map_err(|e| at.kernel(e))
    }

    /// Appends the `wanted` of the `n` values of a chunk.
    pub(crate) fn decode_chunk(
        &self,
        at: &PageId,
        buffers: &[&[u8]],
        n: usize,
        wanted: Wanted<'_>,
        out: &mut Values,
    ) -> Result<()> {
        let Some((first, rest)) = buffers.split_first() else {
            return Err(at.corrupt("expected a compressed buffer in a chunk, found none"));
        };
        if let (Compression::Flat(bits), Wanted::All, Values::Fixed(to)) = (&self.values, wanted, &mut *out) {
            let size = n.saturating_mul(to.width);
            if to.width as u64 * 8 == *bits && general::stated_length(self.scheme, first) == Some(size) {
                return self.append_flat(at, first, size, to.bytes());
            }
        }
        // Memory of the last chunk, taken rather than borrowed: what is within may be compressed itself.
        let mut raw = SCRATCH.take();
        let done = self.decode_raw(at, first, rest, n, wanted, &mut raw, out);
        if raw.capacity() <= MOST_SCRATCH {
            SCRATCH.set(raw);
        }
        done
    }

    #[allow(clippy::too_many_arguments)]
    fn decode_raw(
        &self,
        at: &PageId,
        first: &[u8],
        rest: &[&[u8]],
        n: usize,
        wanted: Wanted<'_>,
        raw: &mut Vec<u8>,
        out: &mut Values,
    ) -> Result<()> {
        let length = match first {
            [] => 0,
            _ => general::decompress_over(self.scheme, first, raw).map_err(|e| at.kernel(e))?,
        };
        let mut buffers = Vec::with_capacity(rest.len() + 1);
        buffers.push(raw.get(..length).unwrap_or_default());
        buffers.extend_from_slice(rest);
        self.values.decode_chunk(at, &buffers, n, wanted, out)
    }

    /// Decompresses a chunk's values to where they belong.
    fn append_flat(&self, at: &PageId, stored: &[u8], size: usize, out: &mut Vec<u8>) -> Result<()> {
        let expected = out.len().saturating_add(size);
        general::decompress_to(self.scheme, stored, size, out).map_err(|e| at.kernel(e))?;
        if out.len() != expected {
            return Err(at.corrupt(format!(
                "expected {size} bytes of values in a chunk, found {}",
                size.saturating_sub(expected.saturating_sub(out.len()))
            )));
        }
        Ok(())
    }

    /// Appends the `n` values of a block.
    pub(crate) fn decode_block(&self, at: &PageId, bits: u64, block: &[u8], n: usize, out: &mut Vec<u8>) -> Result<()> {
        let raw = self.decompress(at, block, usize::MAX)?;
        self.values.decode_block(at, bits, &raw, n, out)
    }

    /// Appends one value that lies by itself.
    pub(crate) fn decode_value(&self, at: &PageId, value: &[u8], out: &mut Values) -> Result<()> {
        match (&self.values, &mut *out) {
            (Compression::Variable(_), Values::Variable(to)) => self.append_value(at, value, to),
            (Compression::Variable(_), Values::LargeVariable(to)) => self.append_value(at, value, to),
            _ => {
                let raw = self.decompress(at, value, usize::MAX)?;
                self.values.decode_value(at, &raw, out)
            }
        }
    }

    fn append_value<O: Offset>(&self, at: &PageId, value: &[u8], out: &mut VariableBuilder<O>) -> Result<()> {
        if !value.is_empty() {
            general::decompress_to(self.scheme, value, usize::MAX, out.bytes()).map_err(|e| at.kernel(e))?;
        }
        out.end_value();
        Ok(())
    }

    /// Bytes of a value that lies by itself, as far as it says.
    pub(crate) fn value_bytes(&self, value: &[u8]) -> usize {
        general::stated_length(self.scheme, value).unwrap_or(value.len())
    }
}
