//! Reading bit streams: the bytes that hold the rows, each row at its bit.

use std::ops::Range;

use arrow_buffer::Buffer;
use esker_codec::bit_stream;
use esker_proto::lance::encodings as pb;

use crate::error::Result;
use crate::v2_0::page::{length, PageContext, Rows};

/// The values of `rows`, little-endian, in their uncompressed width.
pub(crate) async fn fetch(page: &PageContext<'_>, packed: &pb::Bitpacked, rows: Rows<'_>) -> Result<Buffer> {
    let bits = packed.compressed_bits_per_value;
    if bits == 0 || bits > 64 {
        return Err(page.corrupt(format!("expected values packed into 1 to 64 bits, found {bits}")));
    }
    let in_bits = page.byte_ranges(rows, bits)?;
    let in_bytes: Vec<Range<u64>> = in_bits.iter().map(|r| r.start / 8..r.end.div_ceil(8)).collect();
    let parts = page.fetch(packed.buffer.as_ref(), &in_bytes).await?;
    let mut values = Vec::new();
    for ((row, bit), part) in rows.iter().zip(&in_bits).zip(parts) {
        bit_stream::decode(
            packed.uncompressed_bits_per_value,
            bits,
            packed.signed,
            &part,
            bit.start % 8,
            length(row.end - row.start)?,
            &mut values,
        )
        .map_err(|e| page.kernel(e))?;
    }
    Ok(Buffer::from_vec(values))
}
