//! Packed blocks to values.

use esker_codec::outline_bitpack;
use esker_proto::lance::encodings21 as pb;

use crate::error::Result;
use crate::v2_1::decode::Compression;
use crate::v2_1::page::PageId;

/// Reads the description.
pub(crate) fn compression(at: &PageId, packed: &pb::OutOfLineBitpacking) -> Result<Compression> {
    match Compression::new(at, packed.values.as_deref())? {
        Compression::Flat(bits) => Ok(Compression::OutOfLineBitpacking(
            packed.uncompressed_bits_per_value,
            bits,
        )),
        other => Err(at.corrupt(format!("expected flat packed values, found {}", other.describe()))),
    }
}

/// Appends the `n` values of a block.
pub(crate) fn block(at: &PageId, bits: u64, packed: u64, stored: &[u8], n: usize, out: &mut Vec<u8>) -> Result<()> {
    outline_bitpack::decode(bits, packed, stored, n, out).map_err(|e| at.kernel(e))
}
