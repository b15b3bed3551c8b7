//! The description of a mini-block page: read and checked once, cached for later reads.

use std::ops::Range;

use bytes::Bytes;
use esker_proto::lance::encodings21 as pb;

use super::index::ChunkIndex;
use crate::error::Result;
use crate::v2_1::builder::LeafBuilder;
use crate::v2_1::decode::Compression;
use crate::v2_1::dictionary::decode::Dictionary;
use crate::v2_1::flat;
use crate::v2_1::leaf::LoadedBytes;
use crate::v2_1::levels::decode::Levels;
use crate::v2_1::levels::layers::Layers;
use crate::v2_1::page::{to_len, PageId};

/// A page of chunks.
#[derive(Debug)]
pub(crate) struct MiniBlockPage {
    pub(crate) layers: Layers,
    pub(crate) rep: Option<Compression>,
    pub(crate) def: Option<Compression>,
    pub(crate) values: Compression,
    pub(crate) num_buffers: usize,
    pub(crate) has_large_chunk: bool,
    pub(crate) index: ChunkIndex,
    pub(crate) dictionary: Option<Dictionary>,
    /// Where the chunks lie in the file.
    data: Range<u64>,
}

/// Where the parts of a page lie in the file that have to be read before its chunks can be.
#[derive(Debug, Clone)]
pub(crate) struct MiniBlockParts {
    words: Range<u64>,
    data: Range<u64>,
    dictionary: Option<Range<u64>>,
    repetition: Option<Range<u64>>,
}

impl MiniBlockParts {
    /// Finds the parts among the page's buffers.
    pub(crate) fn new(at: &PageId, layout: &pb::MiniBlockLayout, buffers: &[Range<u64>]) -> Result<MiniBlockParts> {
        let buffer = |index: usize, what: &str| {
            let found = buffers.get(index).cloned();
            found.ok_or_else(|| at.missing(what))
        };
        let has_dictionary = layout.dictionary.is_some();
        let has_index = layout.repetition_index_depth > 0;
        Ok(MiniBlockParts {
            words: buffer(0, "a buffer of chunk sizes")?,
            data: buffer(1, "a buffer of chunks")?,
            dictionary: has_dictionary
                .then(|| buffer(2, "a buffer for the dictionary"))
                .transpose()?,
            repetition: has_index
                .then(|| buffer(2 + usize::from(has_dictionary), "a buffer for the repetition index"))
                .transpose()?,
        })
    }

    /// What to read.
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        let mut ranges = vec![self.words.clone()];
        ranges.extend(self.dictionary.clone());
        ranges.extend(self.repetition.clone());
        ranges
    }
}

/// The chunks that rows of a page lie in: a chunk, and which of the ranges of rows it holds parts of.
#[derive(Debug, Clone)]
pub(crate) struct Pick {
    pub(crate) chunk: usize,
    pub(crate) ranges: Range<usize>,
    /// Few of its values are wanted, and they lie where they can be read without the others.
    pub(crate) is_direct: bool,
}

/// The bytes before the values of a chunk that has neither levels nor more than one buffer: its number of levels and the buffer's size.
const HEADER: u64 = 8;

/// The part of a chunk that is read value by value, at most.
const DIRECT_PART: u64 = 8;

impl MiniBlockPage {
    /// Reads a page's description and its parts, which `bytes` are in the order of [`MiniBlockParts::ranges`].
    pub(crate) fn new(
        at: &PageId,
        layout: &pb::MiniBlockLayout,
        layers: Layers,
        num_rows: u64,
        parts: MiniBlockParts,
        data_type: &arrow_schema::DataType,
        bytes: &[Bytes],
    ) -> Result<MiniBlockPage> {
        let compression = |encoding: &Option<pb::CompressiveEncoding>| {
            let encoding = encoding.as_ref();
            encoding
                .map(|encoding| Compression::new(at, Some(encoding)))
                .transpose()
        };
        let rep = compression(&layout.rep_compression)?;
        let def = compression(&layout.def_compression)?;
        let values = Compression::new(at, layout.value_compression.as_ref())?;
        if layout.num_buffers > 64 {
            return Err(at.corrupt(format!(
                "expected a few buffers in a chunk, found {}",
                layout.num_buffers
            )));
        }
        if parts.repetition.is_some() != (layers.max_rep > 0) || rep.is_some() != (layers.max_rep > 0) {
            return Err(at.corrupt("expected repetition levels and their index where there are lists and only there"));
        }
        let mut bytes = bytes.iter();
        let mut next = || bytes.next().cloned().unwrap_or_default();
        let words = next();
        let dictionary = parts.dictionary.as_ref().map(|_| next());
        let repetition = parts.repetition.as_ref().map(|_| next());
        let size = parts.data.end - parts.data.start;
        let index = ChunkIndex::new(at, layout, num_rows, &words, repetition.as_deref(), size)?;
        let dictionary = match dictionary {
            Some(stored) => Some(Dictionary::new(at, layout, data_type, &stored)?),
            _ => None,
        };
        Ok(MiniBlockPage {
            layers,
            rep,
            def,
            values,
            num_buffers: to_len(at, layout.num_buffers)?,
            has_large_chunk: layout.has_large_chunk,
            index,
            dictionary,
            data: parts.data,
        })
    }

    /// Bytes that a cached page takes.
    pub(crate) fn memory(&self) -> usize {
        4096 + self.index.memory() + self.dictionary.as_ref().map_or(0, Dictionary::memory)
    }

    /// The chunks that sorted `rows` lie in.
    pub(crate) fn picks(&self, rows: &[Range<u64>]) -> Vec<Pick> {
        let mut picks: Vec<Pick> = Vec::new();
        for (number, range) in rows.iter().enumerate() {
            for chunk in self.index.chunks(range) {
                match picks.last_mut() {
                    Some(last) if last.chunk == chunk => last.ranges.end = number + 1,
                    _ => picks.push(Pick {
                        chunk,
                        ranges: number..number + 1,
                        is_direct: false,
                    }),
                }
            }
        }
        if let Some(width) = self.flat_width() {
            for pick in &mut picks {
                pick.is_direct = self.is_direct(pick, rows, width);
            }
        }
        picks
    }

    /// The bytes of a value, where chunks hold nothing but values one after the other.
    fn flat_width(&self) -> Option<u64> {
        let is_plain = self.rep.is_none() && self.def.is_none() && self.dictionary.is_none() && self.num_buffers == 1;
        match &self.values {
            Compression::Flat(bits) if is_plain && *bits > 0 && bits % 8 == 0 => Some(bits / 8),
            _ => None,
        }
    }

    fn is_direct(&self, pick: &Pick, rows: &[Range<u64>], width: u64) -> bool {
        let (values, bytes) = (self.index.values(pick.chunk), self.index.bytes(pick.chunk));
        let size = bytes.end - bytes.start;
        let held = (values.end - values.start).checked_mul(width);
        // A chunk that is too short is read as a whole, which says so.
        let is_there = held
            .and_then(|held| held.checked_add(HEADER))
            .is_some_and(|held| held <= size);
        let wanted = self.wanted_in(pick, rows);
        let wanted = wanted.fold(0_u64, |sum, rows| sum.saturating_add(rows.end - rows.start));
        is_there && wanted.saturating_mul(width) <= size / DIRECT_PART
    }

    /// What a picked chunk holds of `rows`, each range counted from its first value.
    fn wanted_in<'a>(&self, pick: &Pick, rows: &'a [Range<u64>]) -> impl Iterator<Item = Range<u64>> + use<'a> {
        let values = self.index.values(pick.chunk);
        let rows = rows.get(pick.ranges.clone()).unwrap_or_default().iter();
        rows.map(move |rows| {
            let start = rows.start.clamp(values.start, values.end);
            start - values.start..rows.end.clamp(start, values.end) - values.start
        })
    }

    /// Where the wanted values of a chunk lie in the file that is read value by value.
    fn value_ranges<'a>(
        &self,
        pick: &Pick,
        rows: &'a [Range<u64>],
        width: u64,
    ) -> impl Iterator<Item = Range<u64>> + use<'a> {
        let first = self.chunk_range(pick.chunk).start.saturating_add(HEADER);
        // Within the chunk, as `is_direct` saw.
        let place = move |value: u64| first.saturating_add(value.saturating_mul(width));
        self.wanted_in(pick, rows)
            .map(move |values| place(values.start)..place(values.end))
    }

    /// Appends the wanted values of a chunk of which only they were read.
    pub(crate) fn decode_direct(
        &self,
        at: &PageId,
        pick: &Pick,
        rows: &[Range<u64>],
        bytes: &LoadedBytes,
        levels: &mut Levels,
        out: &mut LeafBuilder,
    ) -> Result<()> {
        let (LeafBuilder::Plain(out), Some(width)) = (out, self.flat_width()) else {
            return Err(at.corrupt("expected a dictionary for a column of a dictionary type, found values without one"));
        };
        for range in self.value_ranges(pick, rows, width) {
            let stored = bytes.get(at, &range)?;
            let n = to_len(at, (range.end - range.start) / width)?;
            flat::decode::append(at, width.saturating_mul(8), stored, 0..n, out)?;
            levels.len = levels.len.saturating_add(n);
        }
        Ok(())
    }

    /// Where a chunk lies in the file.
    pub(crate) fn chunk_range(&self, chunk: usize) -> Range<u64> {
        let bytes = self.index.bytes(chunk);
        self.data.start + bytes.start..self.data.start + bytes.end
    }

    /// Where the picked chunks lie in the file, or the wanted values of those that are read value by value: neighbours joined.
    pub(crate) fn ranges(&self, picks: &[Pick], rows: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for pick in picks {
            if let Some(width) = self.flat_width().filter(|_| pick.is_direct) {
                ranges.extend(self.value_ranges(pick, rows, width));
                continue;
            }
            let range = self.chunk_range(pick.chunk);
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => ranges.push(range),
            }
        }
        ranges
    }
}
