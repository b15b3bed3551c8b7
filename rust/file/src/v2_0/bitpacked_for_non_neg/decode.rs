//! Reading blocks of 1024: those that hold the rows, and of them no more than the rows.

use std::ops::Range;

use arrow_buffer::Buffer;
use bytes::Bytes;
use esker_codec::bitpack::{unpack_range, Word};
use esker_proto::lance::encodings as pb;

use crate::error::Result;
use crate::v2_0::page::{length, PageContext, Rows};

const BLOCK: u64 = 1024;

/// The values of `rows`, little-endian, in their uncompressed width.
pub(crate) async fn fetch(page: &PageContext<'_>, packed: &pb::BitpackedForNonNeg, rows: Rows<'_>) -> Result<Buffer> {
    let (bits, whole_bits) = (packed.compressed_bits_per_value, packed.uncompressed_bits_per_value);
    if bits == 0 || bits > whole_bits || whole_bits > 64 {
        return Err(page.corrupt(format!(
            "expected values of 8 to 64 bits packed into fewer, found {whole_bits} packed into {bits}"
        )));
    }
    let blocks: Vec<Range<u64>> = rows
        .iter()
        .map(|r| r.start / BLOCK..r.end.div_ceil(BLOCK).max(r.start / BLOCK))
        .collect();
    // 1024 values of `bits` bits are 128 times as many bytes.
    let parts = page
        .fetch(packed.buffer.as_ref(), &page.byte_ranges(&blocks, bits * BLOCK / 8)?)
        .await?;
    let width = length(bits)?;
    let values = match whole_bits {
        8 => unpack::<u8>(page, width, rows, &parts)?,
        16 => unpack::<u16>(page, width, rows, &parts)?,
        32 => unpack::<u32>(page, width, rows, &parts)?,
        64 => unpack::<u64>(page, width, rows, &parts)?,
        other => return Err(page.corrupt(format!("expected values of 8, 16, 32 or 64 bits, found {other}"))),
    };
    Ok(Buffer::from_vec(values))
}

fn unpack<W: Word>(page: &PageContext<'_>, width: usize, rows: Rows<'_>, parts: &[Bytes]) -> Result<Vec<u8>> {
    let mut values = Vec::new();
    let block_bytes = width.saturating_mul(128).max(1);
    for (row, part) in rows.iter().zip(parts) {
        let mut start = row.start;
        for block in part.chunks_exact(block_bytes) {
            let first = start - start % BLOCK;
            let end = row.end.min(first + BLOCK);
            let within = length(start - first)?..length(end - first)?;
            unpack_range::<W>(width, block, within, &mut values).map_err(|e| page.kernel(e))?;
            start = end;
        }
        if start != row.end {
            return Err(page.corrupt(format!("expected packed values up to {}, found {start}", row.end)));
        }
    }
    Ok(values)
}
