//! Writing flat values.

use std::ops::Range;

use arrow_buffer::Buffer;
use esker_proto::lance::encodings21 as pb;

use super::super::message;
use super::super::mini_block::encode::{fixed_chunk_len, ChunkBuffers, ChunkEncoder};
use crate::error::{FileError, Result};

/// Flat values in chunks.
pub(crate) struct FlatChunks {
    pub(crate) bits: usize,
    pub(crate) bytes: Buffer,
}

/// The bytes of the values `range`, which start at a whole byte.
pub(crate) fn value_bytes(bytes: &[u8], bits: usize, range: Range<usize>) -> Result<&[u8]> {
    let start = range.start.saturating_mul(bits) / 8;
    let end = range.end.saturating_mul(bits).div_ceil(8);
    bytes.get(start..end).ok_or_else(|| {
        FileError::invalid(format!(
            "expected {end} bytes of values, found {}; the array is shorter than it says",
            bytes.len()
        ))
    })
}

impl ChunkEncoder for FlatChunks {
    fn encoding(&self) -> pb::CompressiveEncoding {
        message::flat(self.bits as u64)
    }

    fn chunk_len(&self, _at: usize, left: usize) -> usize {
        fixed_chunk_len(self.bits, left)
    }

    fn encode(&self, values: Range<usize>, out: &mut ChunkBuffers) -> Result<()> {
        let bytes = value_bytes(self.bytes.as_slice(), self.bits, values)?;
        out.add(|data| {
            data.extend_from_slice(bytes);
            Ok(())
        })
    }
}
