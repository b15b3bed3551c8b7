//! Packed blocks to values; of a block of which few values are wanted, those alone are unpacked.

use esker_codec::inline_bitpack;

use crate::error::Result;
use crate::v2_1::builder::Values;
use crate::v2_1::decode::Wanted;
use crate::v2_1::page::PageId;

const BLOCK: usize = 1024;

/// Appends the `wanted` of the `n` values of a chunk.
pub(crate) fn chunk(
    at: &PageId,
    bits: u64,
    stored: &[u8],
    n: usize,
    wanted: Wanted<'_>,
    out: &mut Values,
) -> Result<()> {
    if n > BLOCK {
        return Err(at.corrupt(format!("expected at most 1024 values in a packed chunk, found {n}")));
    }
    let out = out.fixed(at, bits)?.bytes();
    match wanted {
        Wanted::All => block(at, bits, stored, n, out),
        Wanted::Ranges(ranges) => {
            for range in ranges {
                inline_bitpack::decode_range(bits, stored, range.clone(), out).map_err(|e| at.kernel(e))?;
            }
            Ok(())
        }
    }
}

/// Appends the `n` values of a block.
pub(crate) fn block(at: &PageId, bits: u64, stored: &[u8], n: usize, out: &mut Vec<u8>) -> Result<()> {
    inline_bitpack::decode(bits, stored, n, out).map_err(|e| at.kernel(e))
}
