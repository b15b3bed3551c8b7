//! Writing runs.

use std::ops::Range;

use arrow_buffer::Buffer;
use esker_codec::rle;
use esker_proto::lance::encodings21 as pb;

use super::super::flat::encode::value_bytes;
use super::super::message;
use super::super::mini_block::encode::{ChunkBuffers, ChunkEncoder, MAX_CHUNK_BYTES, MAX_CHUNK_VALUES};
use crate::error::Result;

/// The longest run that a length says.
pub(crate) const MAX_RUN: usize = 255;

/// Runs in chunks.
pub(crate) struct RunChunks {
    pub(crate) bits: usize,
    pub(crate) bytes: Buffer,
}

impl ChunkEncoder for RunChunks {
    fn encoding(&self) -> pb::CompressiveEncoding {
        message::run_length(self.bits as u64)
    }

    fn num_buffers(&self) -> usize {
        2
    }

    fn chunk_len(&self, at: usize, left: usize) -> usize {
        let mut len = left.min(MAX_CHUNK_VALUES);
        loop {
            let bytes = value_bytes(self.bytes.as_slice(), self.bits, at..at + len).unwrap_or_default();
            let runs = rle::count_runs(self.bits as u64, bytes) + len / MAX_RUN;
            if len <= 64 || runs * (self.bits / 8 + 1) <= MAX_CHUNK_BYTES {
                return len;
            }
            len = 1 << (len - 1).ilog2();
        }
    }

    fn encode(&self, values: Range<usize>, out: &mut ChunkBuffers) -> Result<()> {
        let bytes = value_bytes(self.bytes.as_slice(), self.bits, values)?;
        let mut lengths = Vec::new();
        out.add(|data| {
            rle::encode(self.bits as u64, bytes, data, &mut lengths);
            Ok(())
        })?;
        out.add(|data| {
            data.extend_from_slice(&lengths);
            Ok(())
        })
    }
}

/// Appends all values as runs in one buffer.
pub(crate) fn encode_block(bits: usize, bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + 8, 0);
    let mut lengths = Vec::new();
    rle::encode(bits as u64, bytes, out, &mut lengths);
    let size = (out.len() - start - 8) as u64;
    if let Some(place) = out.get_mut(start..start + 8) {
        place.copy_from_slice(&size.to_le_bytes());
    }
    out.extend_from_slice(&lengths);
}
