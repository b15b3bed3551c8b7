//! Writing with general compression.

use std::ops::Range;

use arrow_buffer::Buffer;
use esker_codec::general::compress;
use esker_proto::lance::encodings21 as pb;

use super::super::message;
use super::super::mini_block::encode::{ChunkBuffers, ChunkEncoder, MAX_CHUNK_VALUES};
use super::super::values::VariableWidth;
use crate::error::{FileError, Result};

/// A scheme and its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scheme {
    pub(crate) name: &'static str,
    pub(crate) level: Option<i32>,
}

impl Scheme {
    /// Whether pylance decompresses a value without any byte, which is what a null is: its lz4 wants a length before all else.
    pub(crate) fn reads_nulls(self) -> bool {
        self.name != "lz4"
    }

    /// What dictionaries are compressed with unless asked otherwise.
    pub(crate) const LZ4: Scheme = Scheme {
        name: "lz4",
        level: None,
    };

    /// What large values are compressed with unless asked otherwise.
    pub(crate) const ZSTD: Scheme = Scheme {
        name: "zstd",
        level: None,
    };

    /// For files that are to be small: a tenth smaller than at the default, at a tenth of the speed of writing and the same of reading.
    pub(crate) const SMALLEST: Scheme = Scheme {
        name: "zstd",
        level: Some(11),
    };

    /// For what is small and shared by many values: a third smaller than at the default, and as fast to undo.
    pub(crate) const THOROUGH: Scheme = Scheme {
        name: "zstd",
        level: Some(15),
    };

    /// The compression around what `values` describes.
    pub(crate) fn encoding(self, values: pb::CompressiveEncoding) -> pb::CompressiveEncoding {
        let scheme = if self.name == "zstd" {
            pb::CompressionScheme::CompressionAlgorithmZstd
        } else {
            pb::CompressionScheme::CompressionAlgorithmLz4
        };
        message::general(scheme, self.level, values)
    }

    /// Appends the bytes, compressed.
    pub(crate) fn compress(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        compress(self.name, self.level, bytes, out).map_err(|e| FileError::invalid(e.to_string()))
    }
}

/// General compression around chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Around {
    pub(crate) scheme: Scheme,
    /// How many times as many values a chunk holds, so that it takes about as many bytes of the file as without compression: 1, 2, 4, ...
    pub(crate) times: usize,
}

impl Around {
    /// How many values from `at` on would make a good chunk of `chunks`, `left` at most: a power of two, or `left`.
    pub(crate) fn chunk_len(self, chunks: &dyn ChunkEncoder, at: usize, left: usize) -> usize {
        let len = chunks.chunk_len(at, left);
        let wanted = len.saturating_mul(self.times).min(MAX_CHUNK_VALUES.max(len));
        wanted.min(left)
    }
}

/// Chunks whose first buffer is compressed.
pub(crate) struct GeneralChunks<'a> {
    pub(crate) around: Around,
    pub(crate) inner: &'a dyn ChunkEncoder,
}

impl ChunkEncoder for GeneralChunks<'_> {
    fn encoding(&self) -> pb::CompressiveEncoding {
        self.around.scheme.encoding(self.inner.encoding())
    }

    fn num_buffers(&self) -> usize {
        self.inner.num_buffers()
    }

    fn chunk_len(&self, at: usize, left: usize) -> usize {
        self.around.chunk_len(self.inner, at, left)
    }

    fn encode(&self, values: Range<usize>, out: &mut ChunkBuffers) -> Result<()> {
        let (mut data, mut sizes) = (Vec::new(), Vec::new());
        self.inner
            .encode(values, &mut ChunkBuffers::new(&mut data, &mut sizes))?;
        let mut at = 0;
        for (number, size) in sizes.into_iter().enumerate() {
            let bytes = data.get(at..at + size).unwrap_or_default();
            out.add(|data| {
                if number == 0 {
                    return self.around.scheme.compress(bytes, data);
                }
                data.extend_from_slice(bytes);
                Ok(())
            })?;
            at += size.next_multiple_of(8);
        }
        Ok(())
    }
}

/// Each value compressed by itself.
pub(crate) fn compress_values(scheme: Scheme, values: &VariableWidth) -> Result<VariableWidth> {
    let mut bytes = Vec::with_capacity(values.bytes.len() / 2);
    let mut offsets = Vec::with_capacity(values.offsets.len());
    offsets.push(0);
    for value in values.iter() {
        scheme.compress(value, &mut bytes)?;
        offsets.push(bytes.len());
    }
    Ok(VariableWidth {
        large: values.large,
        offsets,
        bytes: Buffer::from_vec(bytes),
    })
}
