//! Packed blocks to values; of a block of which few values are wanted, those alone are unpacked.

use esker_codec::inline_bitpack;

use crate::error::Result;
use crate::v2_1::builder::Values;
use crate::v2_1::decode::Wanted;
use crate::v2_1::page::PageId;

const BLOCK: usize = 1024;
const MANY: usize = 8;

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
        // To unpack all is cheaper than to find many.
        Wanted::Ranges(ranges) if ranges.len() > MANY => {
            let mut all = Vec::with_capacity(BLOCK * 8);
            block(at, bits, stored, n, &mut all)?;
            let width = usize::try_from(bits / 8).unwrap_or(0);
            for range in ranges {
                let bytes = range.start.saturating_mul(width)..range.end.saturating_mul(width);
                out.extend_from_slice(all.get(bytes).unwrap_or_default());
            }
            Ok(())
        }
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
