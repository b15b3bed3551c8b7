//! Writing levels: in a chunk, or before each value.
//!
//! In a chunk they are packed out of line, all levels of a page in the width of the highest.

use esker_proto::lance::encodings21 as pb;

use super::super::message;
use crate::error::Result;

/// Levels of one kind, as a page's chunks hold them.
pub(crate) struct LevelEncoder<'a> {
    levels: &'a [u16],
}

impl<'a> LevelEncoder<'a> {
    /// For levels of which `max` is the highest.
    pub(crate) fn new(levels: &'a [u16], _max: u16) -> Self {
        LevelEncoder { levels }
    }

    /// How the chunks' levels are compressed.
    pub(crate) fn encoding(&self) -> pb::CompressiveEncoding {
        message::flat(16)
    }

    /// Appends the levels of one chunk.
    pub(crate) fn encode(&self, entries: std::ops::Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        let levels = self.levels.get(entries).unwrap_or_default();
        out.extend(levels.iter().flat_map(|level| level.to_le_bytes()));
        Ok(())
    }
}

/// Levels as they are: two bytes each.
pub(crate) fn plain(levels: Option<&[u16]>) -> Vec<u8> {
    levels
        .unwrap_or_default()
        .iter()
        .flat_map(|level| level.to_le_bytes())
        .collect()
}

/// The message's numbers of the layers.
pub(crate) fn layer_numbers(layers: &[pb::RepDefLayer]) -> Vec<i32> {
    layers.iter().map(|layer| i32::from(*layer)).collect()
}
