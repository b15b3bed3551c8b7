//! Writing inline bit packing.

use std::ops::Range;

use arrow_buffer::Buffer;
use esker_codec::bitpack::BLOCK;
use esker_codec::inline_bitpack;
use esker_proto::lance::encodings21 as pb;

use super::super::flat::encode::value_bytes;
use super::super::message;
use super::super::mini_block::encode::{ChunkBuffers, ChunkEncoder};
use crate::error::Result;

/// Packed values in chunks.
pub(crate) struct PackedChunks {
    pub(crate) bits: usize,
    pub(crate) bytes: Buffer,
}

impl ChunkEncoder for PackedChunks {
    fn encoding(&self) -> pb::CompressiveEncoding {
        message::inline_bitpacking(self.bits as u64)
    }

    fn chunk_len(&self, _at: usize, left: usize) -> usize {
        left.min(BLOCK)
    }

    fn encode(&self, values: Range<usize>, out: &mut ChunkBuffers) -> Result<()> {
        let bytes = value_bytes(self.bytes.as_slice(), self.bits, values)?;
        out.add(|data| {
            inline_bitpack::encode(self.bits as u64, bytes, data);
            Ok(())
        })
    }
}
