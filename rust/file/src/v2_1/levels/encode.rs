//! Writing levels: in a chunk, or all of a page's together.
//!
//! They are packed out of line, all levels of a page in the width of the highest. Where they hardly change they are runs in version 2.2,
//! and compressed with lz4 in version 2.1, which has no runs of levels.

use std::ops::Range;

use arrow_buffer::Buffer;
use esker_codec::outline_bitpack;
use esker_proto::lance::encodings21 as pb;

use super::super::general::encode::Scheme;
use super::super::message;
use super::super::run_length::encode::{encode_block, MAX_RUN};
use crate::error::Result;

/// Bytes before the runs of a chunk.
const RUNS_HEADER: usize = 8;

/// Bytes of a run: its level and its length.
const RUN_BYTES: usize = 3;

/// Levels of one kind, as a page holds them.
pub(crate) struct LevelEncoder {
    bytes: Buffer,
    way: Way,
}

enum Way {
    /// In so many bits each.
    Packed(u64),
    Runs,
    Lz4,
}

/// Bytes of a piece of levels that are all one, compressed.
const LZ4_HEADER: usize = 24;

/// Bytes of a change between levels, compressed.
const LZ4_CHANGE: usize = 5;

impl LevelEncoder {
    /// For levels of which `max` is the highest, in pieces of about `piece`; `runs`: they may be runs,
    /// rather than compressed.
    pub(crate) fn new(levels: &[u16], max: u16, piece: usize, runs: bool) -> Self {
        let bits = u64::from((u16::BITS - max.leading_zeros()).max(1));
        let changes = changes(levels);
        let pieces = levels.len().div_ceil(piece.max(1));
        // A piece is packed in blocks of 1,024.
        let blocks = pieces.max(levels.len().div_ceil(1024));
        let packed = blocks.saturating_mul(128 * usize::try_from(bits).unwrap_or(16));
        let packed = packed.min(levels.len() * 2);
        let mut as_runs = (changes + pieces) * RUN_BYTES + pieces * RUNS_HEADER;
        if as_runs < packed {
            as_runs += cuts(levels) * RUN_BYTES;
        }
        let compressed = pieces * LZ4_HEADER + changes * LZ4_CHANGE + levels.len() * 2 / MAX_RUN;
        let way = match runs {
            true if as_runs < packed => Way::Runs,
            false if compressed < packed => Way::Lz4,
            _ => Way::Packed(bits),
        };
        let bytes = Buffer::from_slice_ref(levels);
        LevelEncoder { bytes, way }
    }

    /// How the levels are compressed.
    pub(crate) fn encoding(&self) -> pb::CompressiveEncoding {
        match self.way {
            Way::Packed(bits) => message::out_of_line_bitpacking(16, bits),
            Way::Runs => message::run_length(16),
            Way::Lz4 => Scheme::LZ4.encoding(message::flat(16)),
        }
    }

    /// Appends the levels of some entries.
    pub(crate) fn encode(&self, entries: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        let levels = self
            .bytes
            .as_slice()
            .get(entries.start * 2..entries.end * 2)
            .unwrap_or_default();
        match self.way {
            Way::Packed(bits) => outline_bitpack::encode(16, bits, levels, out),
            Way::Runs => encode_block(16, levels, out),
            Way::Lz4 => Scheme::LZ4.compress(levels, out)?,
        }
        Ok(())
    }
}

/// How often the level changes.
fn changes(levels: &[u16]) -> usize {
    let after = levels.get(1..).unwrap_or_default();
    levels
        .iter()
        .zip(after)
        .map(|(before, level)| usize::from(before != level))
        .sum()
}

/// How often a run between changes is cut as too long.
fn cuts(levels: &[u16]) -> usize {
    let (mut cut, mut start) = (0, 0);
    let after = levels.get(1..).unwrap_or_default();
    for (at, (before, level)) in levels.iter().zip(after).enumerate() {
        if before != level {
            cut += (at - start) / MAX_RUN;
            start = at + 1;
        }
    }
    cut + levels.len().saturating_sub(start + 1) / MAX_RUN
}

/// Levels as they are: two bytes each.
pub(crate) fn plain(levels: Option<&[u16]>) -> Vec<u8> {
    Buffer::from_slice_ref(levels.unwrap_or_default()).as_slice().to_vec()
}

/// The message's numbers of the layers.
pub(crate) fn layer_numbers(layers: &[pb::RepDefLayer]) -> Vec<i32> {
    layers.iter().map(|layer| i32::from(*layer)).collect()
}
