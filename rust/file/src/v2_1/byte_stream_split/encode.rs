//! Writing split bytes.

use std::ops::Range;

use arrow_buffer::Buffer;
use esker_codec::byte_stream_split;
use esker_proto::lance::encodings21 as pb;

use super::super::flat::encode::value_bytes;
use super::super::message;
use super::super::mini_block::encode::{ChunkBuffers, ChunkEncoder};
use crate::error::Result;

/// The bytes of a chunk.
const CHUNK_BYTES: usize = 4096;

/// Split values in chunks.
pub(crate) struct SplitChunks {
    pub(crate) bits: usize,
    pub(crate) bytes: Buffer,
}

impl ChunkEncoder for SplitChunks {
    fn encoding(&self) -> pb::CompressiveEncoding {
        message::byte_stream_split(self.bits as u64)
    }

    fn chunk_len(&self, _at: usize, left: usize) -> usize {
        left.min(CHUNK_BYTES.checked_div(self.bits / 8).unwrap_or(1))
    }

    fn encode(&self, values: Range<usize>, out: &mut ChunkBuffers) -> Result<()> {
        let bytes = value_bytes(self.bytes.as_slice(), self.bits, values)?;
        out.add(|data| {
            byte_stream_split::split(self.bits / 8, bytes, data);
            Ok(())
        })
    }
}
