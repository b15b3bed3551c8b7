//! The ways to write a page, and what it is written for.

use bytes::Bytes;

use super::dictionary::PlannedDictionary;
use crate::goal::Goal;
use crate::v2_1::byte_stream_split::encode::SplitChunks;
use crate::v2_1::fixed_size_list::encode as fixed_size_list;
use crate::v2_1::flat::encode::FlatChunks;
use crate::v2_1::fsst::encode::Trained;
use crate::v2_1::general::encode::{Around, Scheme};
use crate::v2_1::hints::{Hints, Structure};
use crate::v2_1::inline_bitpacking::encode::PackedChunks;
use crate::v2_1::mini_block::encode::ChunkEncoder;
use crate::v2_1::path::Leaf;
use crate::v2_1::run_length::encode::RunChunks;
use crate::v2_1::values::{FixedSizeLists, FixedWidth};
use crate::version::FileVersion;

/// From this average size in bytes on, values are written as full zip instead of in mini-blocks.
const WIDE_VALUE: usize = 256;

/// A way to write the values of a page.
pub(crate) enum Way {
    Constant(Bytes),
    /// In chunks, each within general compression where that is given.
    Chunks(Coding, Option<Around>),
    Dictionary(Box<PlannedDictionary>),
    Zip,
    ZipSymbols(Box<Trained>),
    ZipCompressed(Scheme),
    /// Only counted: what it would take was estimated, and too much.
    Unmade,
}

/// How the values of a chunk are coded.
pub(crate) enum Coding {
    Flat,
    Packed,
    Runs,
    Split,
    Variable,
    Symbols(std::sync::Arc<Trained>),
}

impl Coding {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Coding::Flat => "flat",
            Coding::Packed => "bit packed",
            Coding::Runs => "runs",
            Coding::Split => "split bytes",
            Coding::Variable => "variable",
            Coding::Symbols(_) => "symbols",
        }
    }
}

/// What a page is written for.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) leaf: &'a Leaf,
    pub(crate) version: FileVersion,
    pub(crate) goal: Goal,
}

impl Target<'_> {
    pub(crate) fn large(&self) -> bool {
        self.version == FileVersion::V2_2
    }

    pub(crate) fn hints(&self) -> &Hints {
        &self.leaf.hints
    }

    /// Whether values of `average` bytes lie by themselves rather than in chunks.
    pub(super) fn zips(&self, average: usize) -> bool {
        match self.hints().structure {
            Some(structure) => structure == Structure::FullZip,
            None => average >= WIDE_VALUE,
        }
    }

    /// The schemes to try around chunks.
    pub(super) fn schemes(&self) -> Vec<Scheme> {
        match (self.hints().general(), self.hints().compression, self.goal) {
            (Some(scheme), _, _) => vec![scheme],
            // Something else is asked for.
            (None, Some(_), _) | (None, None, Goal::Fast) => Vec::new(),
            (None, None, Goal::Balanced) => vec![Scheme::LZ4],
            (None, None, Goal::Small) => vec![Scheme::LZ4, Scheme::SMALLEST],
        }
    }
}

/// The chunks of values of one width.
pub(crate) fn fixed_chunks(fixed: &FixedWidth, coding: &Coding) -> Box<dyn ChunkEncoder> {
    let (bits, bytes) = (fixed.bits, fixed.contiguous());
    match coding {
        Coding::Packed => Box::new(PackedChunks { bits, bytes }),
        Coding::Runs => Box::new(RunChunks { bits, bytes }),
        Coding::Split => Box::new(SplitChunks { bits, bytes }),
        Coding::Flat | Coding::Variable | Coding::Symbols(_) => Box::new(FlatChunks { bits, bytes }),
    }
}

/// Whether lists lie by themselves rather than in chunks.
pub(crate) fn zips_lists(lists: &FixedSizeLists, target: Target) -> bool {
    if lists.items.bits == 0 {
        // Items that are nothing but null have no place in a chunk.
        return true;
    }
    let whole_bytes = lists
        .items_per_list()
        .saturating_mul(lists.items.bits)
        .is_multiple_of(8);
    // Readers take no single bits there.
    whole_bytes && lists.items.bits > 1 && target.zips(fixed_size_list::zipped_width(lists))
}
