//! Streams of bytes to values.

use std::ops::Range;

use esker_proto::lance::encodings21 as pb;

use crate::error::Result;
use crate::v2_1::decode::Compression;
use crate::v2_1::page::PageId;

/// Reads the description.
pub(crate) fn compression(at: &PageId, split: &pb::ByteStreamSplit) -> Result<Compression> {
    match Compression::new(at, split.values.as_deref())? {
        Compression::Flat(bits) if bits > 0 && bits % 8 == 0 => Ok(Compression::ByteStreamSplit(bits)),
        other => Err(at.corrupt(format!(
            "expected flat values that are split, found {}",
            other.describe()
        ))),
    }
}

/// Appends the `n` values of a block.
pub(crate) fn block(at: &PageId, bits: u64, stored: &[u8], n: usize, out: &mut Vec<u8>) -> Result<()> {
    let (width, values) = streams(at, bits, stored, n)?;
    esker_codec::byte_stream_split::join(width, values, out).map_err(|e| at.kernel(e))
}

/// Appends some of the `n` values of a block.
pub(crate) fn range(
    at: &PageId,
    bits: u64,
    stored: &[u8],
    n: usize,
    range: Range<usize>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let (width, values) = streams(at, bits, stored, n)?;
    esker_codec::byte_stream_split::join_range(width, values, range, out).map_err(|e| at.kernel(e))
}

/// The bytes of a value, and the streams of `n` values.
fn streams<'a>(at: &PageId, bits: u64, stored: &'a [u8], n: usize) -> Result<(usize, &'a [u8])> {
    let width = usize::try_from(bits / 8).unwrap_or(0);
    let values = n.checked_mul(width).and_then(|size| stored.get(..size));
    let values = values.ok_or_else(|| {
        at.corrupt(format!(
            "expected {n} split values of {bits} bits, found {} bytes",
            stored.len()
        ))
    })?;
    Ok((width, values))
}
