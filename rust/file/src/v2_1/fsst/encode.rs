//! Writing strings of symbols.

use std::ops::Range;

use arrow_buffer::Buffer;
use esker_codec::fsst::Encoder;
use esker_proto::lance::encodings21 as pb;

use super::super::message;
use super::super::mini_block::encode::{ChunkBuffers, ChunkEncoder};
use super::super::values::VariableWidth;
use super::super::variable::encode::VariableChunks;
use crate::error::Result;

/// Bytes below which a table of symbols is not worth its place.
pub(crate) const MIN_BYTES: usize = 32 * 1024;

/// The shortest longest value that is worth it.
pub(crate) const MIN_LONGEST: usize = 5;

/// Bytes of a table of symbols in the page's description.
pub(crate) const TABLE_BYTES: usize = 2312;

/// Bytes of values that are tried to learn what would be gained.
const TRIED_BYTES: usize = 32 * 1024;

/// Learns symbols from the values; nothing where they would not make the values smaller.
pub(crate) fn train(values: &VariableWidth, forced: bool) -> Option<Trained> {
    let longest = values.iter().map(<[u8]>::len).max().unwrap_or(0);
    if !forced && (values.bytes.len() < MIN_BYTES || longest < MIN_LONGEST) {
        return None;
    }
    let value = |index: usize| values.get(index);
    let encoder = Encoder::train_with(values.len(), value);
    let (mut plain, mut coded) = (0, Vec::new());
    // From all over the page, as its beginning may be unlike the rest.
    let average = (values.bytes.len() / values.len().max(1)).max(1);
    let step = (values.len() * average / TRIED_BYTES).max(1);
    for index in (0..values.len()).step_by(step) {
        plain += value(index).len();
        encoder.encode(value(index), &mut coded);
    }
    Some(Trained {
        encoder,
        plain,
        coded: coded.len(),
    })
}

/// Symbols for a page's values.
pub(crate) struct Trained {
    encoder: Encoder,
    /// Bytes of the values that were tried.
    plain: usize,
    /// Bytes of their codes.
    coded: usize,
}

impl Trained {
    /// About what so many bytes take as codes.
    pub(crate) fn coded_size(&self, bytes: usize) -> usize {
        bytes.saturating_mul(self.coded) / self.plain.max(1)
    }

    /// All values, coded.
    pub(crate) fn encode(&self, values: &VariableWidth) -> Coded {
        // It is an estimate, and memory that grows is copied.
        let expected = self.coded_size(values.bytes.len());
        let mut bytes = Vec::with_capacity(expected.saturating_add(expected / 16));
        let mut offsets = Vec::with_capacity(values.offsets.len());
        offsets.push(0);
        let plain = values.bytes.as_slice();
        self.encoder
            .encode_values(plain, &values.offsets, &mut bytes, &mut offsets);
        Coded {
            table: self.encoder.symbol_table(),
            values: VariableWidth {
                large: values.large,
                offsets,
                bytes: Buffer::from_vec(bytes),
            },
        }
    }
}

/// Values as codes.
pub(crate) struct Coded {
    table: Vec<u8>,
    pub(crate) values: VariableWidth,
}

impl Coded {
    /// How the codes are described, around values of any length.
    pub(crate) fn encoding(&self) -> pb::CompressiveEncoding {
        message::fsst(self.table.clone(), message::variable(self.values.offset_bits() as u64))
    }
}

/// Codes in chunks.
pub(crate) struct CodedChunks<'a> {
    pub(crate) coded: &'a Coded,
}

impl CodedChunks<'_> {
    fn chunks(&self) -> VariableChunks<'_> {
        VariableChunks {
            values: &self.coded.values,
        }
    }
}

impl ChunkEncoder for CodedChunks<'_> {
    fn encoding(&self) -> pb::CompressiveEncoding {
        self.coded.encoding()
    }

    fn chunk_len(&self, at: usize, left: usize) -> usize {
        self.chunks().chunk_len(at, left)
    }

    fn encode(&self, values: Range<usize>, out: &mut ChunkBuffers) -> Result<()> {
        self.chunks().encode(values, out)
    }
}
