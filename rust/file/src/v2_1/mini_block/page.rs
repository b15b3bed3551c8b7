//! The description of a mini-block page: read and checked once, cached for later reads.

use std::ops::Range;

use bytes::Bytes;
use esker_proto::lance::encodings21 as pb;

use super::index::ChunkIndex;
use crate::error::Result;
use crate::v2_1::decode::Compression;
use crate::v2_1::dictionary::decode::Dictionary;
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
}

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
                    }),
                }
            }
        }
        picks
    }

    /// Where a chunk lies in the file.
    pub(crate) fn chunk_range(&self, chunk: usize) -> Range<u64> {
        let bytes = self.index.bytes(chunk);
        self.data.start + bytes.start..self.data.start + bytes.end
    }

    /// Where the picked chunks lie in the file: neighbours joined.
    pub(crate) fn ranges(&self, picks: &[Pick]) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for pick in picks {
            let range = self.chunk_range(pick.chunk);
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => ranges.push(range),
            }
        }
        ranges
    }
}
