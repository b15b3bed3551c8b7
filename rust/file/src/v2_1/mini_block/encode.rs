//! Writing mini-block pages.

use std::ops::Range;

use bytes::Bytes;
use esker_proto::lance::encodings21 as pb;
use esker_proto::lance::encodings21::page_layout::Layout;

use super::super::levels::encode::{layer_numbers, LevelEncoder};
use super::super::levels::serialize::Levels;
use super::super::message::page_layout;
use crate::error::{FileError, Result};

/// Where a part of a chunk ends before a multiple of 8.
const FILL: u8 = 0xfe;

/// The most values of a chunk.
pub(crate) const MAX_CHUNK_VALUES: usize = 4096;

/// The most bytes of a value buffer that a chunk aims at.
pub(crate) const MAX_CHUNK_BYTES: usize = 8186;

/// The most bytes of a chunk whose words are u16.
const MAX_SMALL_CHUNK: usize = 32 * 1024;

/// The most bytes of a chunk that we write where words are u32.
const MAX_LARGE_CHUNK: usize = 1024 * 1024;

/// A compression that can write any run of a page's values by itself.
pub(crate) trait ChunkEncoder {
    /// How it is described.
    fn encoding(&self) -> pb::CompressiveEncoding;

    /// Buffers of each chunk.
    fn num_buffers(&self) -> usize {
        1
    }

    /// How many values from `at` on would make a good chunk, `left` at most: a power of two, or `left`.
    fn chunk_len(&self, at: usize, left: usize) -> usize;

    /// Adds the buffers of the chunk that holds `values`.
    fn encode(&self, values: Range<usize>, out: &mut ChunkBuffers) -> Result<()>;
}

/// Where a chunk's value buffers go.
pub(crate) struct ChunkBuffers<'a> {
    data: &'a mut Vec<u8>,
    sizes: &'a mut Vec<usize>,
}

impl<'a> ChunkBuffers<'a> {
    /// Appends buffers to `data` and their sizes to `sizes`.
    pub(crate) fn new(data: &'a mut Vec<u8>, sizes: &'a mut Vec<usize>) -> Self {
        ChunkBuffers { data, sizes }
    }

    /// Adds the buffer that `write` appends.
    pub(crate) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        let start = self.data.len();
        write(self.data)?;
        self.sizes.push(self.data.len() - start);
        pad(self.data);
        Ok(())
    }
}

/// A page's dictionary, encoded.
pub(crate) struct EncodedDictionary {
    pub(crate) bytes: Vec<u8>,
    pub(crate) encoding: pb::CompressiveEncoding,
    pub(crate) num_items: usize,
}

/// A page: its buffers and what describes them.
pub(crate) struct EncodedPage {
    pub(crate) buffers: Vec<Vec<Bytes>>,
    pub(crate) layout: pb::PageLayout,
}

/// The largest power of two up to `limit`, 1 at least.
pub(crate) fn power_of_two_below(limit: usize) -> usize {
    1 << limit.max(1).ilog2()
}

/// A chunk length for values of `bits` each.
pub(crate) fn fixed_chunk_len(bits: usize, left: usize) -> usize {
    let fitting = (MAX_CHUNK_BYTES * 8).checked_div(bits).unwrap_or(MAX_CHUNK_VALUES);
    let most = power_of_two_below(fitting.clamp(2, MAX_CHUNK_VALUES));
    if left <= most {
        left
    } else {
        most
    }
}

struct Chunks<'a> {
    levels: &'a Levels,
    rep: Option<LevelEncoder>,
    def: Option<LevelEncoder>,
    large: bool,
    words: Vec<u8>,
    data: Vec<u8>,
    index: Vec<u8>,
    sizes: Vec<usize>,
}

/// Encodes a page. `None`: a chunk would hold more levels or bytes than can be said.
pub(crate) fn encode(
    levels: &Levels,
    values: &dyn ChunkEncoder,
    num_values: usize,
    dictionary: Option<EncodedDictionary>,
    large: bool,
) -> Result<Option<EncodedPage>> {
    let piece = values.chunk_len(0, num_values);
    let level_encoder = |levels: &[u16], max| LevelEncoder::new(levels, max, piece, large);
    let mut chunks = Chunks {
        levels,
        rep: levels.rep.as_deref().map(|rep| level_encoder(rep, levels.max_rep)),
        def: levels.def.as_deref().map(|def| level_encoder(def, levels.max_def)),
        large,
        words: Vec::new(),
        data: Vec::new(),
        index: Vec::new(),
        sizes: Vec::new(),
    };
    let (mut at, mut entry) = (0, 0);
    while at < num_values {
        let left = num_values - at;
        let mut len = values.chunk_len(at, left).clamp(1, left);
        loop {
            let start = chunks.data.len();
            let entries = entry..chunks.end_of_entries(entry, len, len == left);
            if chunks.write(values, at..at + len, entries.clone(), len == left)? {
                entry = entries.end;
                if at == 0 {
                    // The other chunks will be about as large.
                    let most = chunks.data.len().saturating_mul(left.div_ceil(len));
                    chunks.data.reserve(most.saturating_add(most / 16));
                }
                break;
            }
            chunks.data.truncate(start);
            // Fewer values make a smaller chunk; two is the fewest that are not the last.
            if len <= 2 {
                return Ok(None);
            }
            len = power_of_two_below(len - 1);
        }
        at += len;
    }
    let Chunks {
        rep,
        def,
        words,
        data,
        index,
        ..
    } = chunks;
    let mut buffers = vec![vec![Bytes::from(words)], vec![Bytes::from(data)]];
    let mut layout = pb::MiniBlockLayout {
        rep_compression: rep.as_ref().map(LevelEncoder::encoding),
        def_compression: def.as_ref().map(LevelEncoder::encoding),
        value_compression: Some(values.encoding()),
        layers: layer_numbers(&levels.layers),
        num_buffers: values.num_buffers() as u64,
        repetition_index_depth: u32::from(rep.is_some()),
        num_items: num_values as u64,
        has_large_chunk: large,
        ..Default::default()
    };
    if let Some(dictionary) = dictionary {
        layout.num_dictionary_items = dictionary.num_items as u64;
        layout.dictionary = Some(dictionary.encoding);
        buffers.push(vec![Bytes::from(dictionary.bytes)]);
    }
    if rep.is_some() {
        buffers.push(vec![Bytes::from(index)]);
    }
    Ok(Some(EncodedPage {
        buffers,
        layout: page_layout(Layout::MiniBlockLayout(layout)),
    }))
}

impl Chunks<'_> {
    /// Where the entries of the next `len` values end; empty lists behind them belong to the next chunk, or to the last.
    fn end_of_entries(&self, start: usize, len: usize, last: bool) -> usize {
        if last {
            return self.levels.num_entries;
        }
        let def = match &self.levels.def {
            Some(def) if self.levels.num_entries > self.levels.num_visible => def,
            _ => return start + len,
        };
        let visible = |level: &u16| *level <= self.levels.max_visible;
        let entries = def.get(start..).unwrap_or_default();
        let behind = entries
            .iter()
            .enumerate()
            .filter(|(_, level)| visible(level))
            .nth(len - 1);
        start + behind.map_or(0, |(index, _)| index + 1)
    }

    /// Appends a chunk; false if it is too large.
    fn write(
        &mut self,
        values: &dyn ChunkEncoder,
        range: Range<usize>,
        entries: Range<usize>,
        last: bool,
    ) -> Result<bool> {
        let has_levels = self.rep.is_some() || self.def.is_some();
        let num_levels = if has_levels { entries.len() } else { 0 };
        let Ok(num_levels) = u16::try_from(num_levels) else {
            return Ok(false);
        };
        let start = self.data.len();
        let size_bytes = if self.large { 4 } else { 2 };
        let level_kinds = usize::from(self.rep.is_some()) + usize::from(self.def.is_some());
        let header = 2 + 2 * level_kinds + size_bytes * values.num_buffers();
        self.data.resize(start + header, 0);
        self.put(start, &num_levels.to_le_bytes());
        self.pad();
        let mut field = start + 2;
        for levels in [&self.rep, &self.def].into_iter().flatten() {
            let from = self.data.len();
            levels.encode(entries.clone(), &mut self.data)?;
            let Ok(size) = u16::try_from(self.data.len() - from) else {
                return Ok(false);
            };
            if let Some(place) = self.data.get_mut(field..field + 2) {
                place.copy_from_slice(&size.to_le_bytes());
            }
            field += 2;
            pad(&mut self.data);
        }
        self.sizes.clear();
        values.encode(range.clone(), &mut ChunkBuffers::new(&mut self.data, &mut self.sizes))?;
        for size in std::mem::take(&mut self.sizes) {
            let limit = if self.large {
                MAX_LARGE_CHUNK
            } else {
                usize::from(u16::MAX)
            };
            if size > limit {
                return Ok(false);
            }
            let size = u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes();
            self.put(field, size.get(..size_bytes).unwrap_or_default());
            field += size_bytes;
        }
        let size = self.data.len() - start;
        if size > if self.large { MAX_LARGE_CHUNK } else { MAX_SMALL_CHUNK } {
            return Ok(false);
        }
        let log = if last { 0 } else { range.len().ilog2() };
        let word = u32::try_from((size / 8 - 1) << 4)
            .map_err(|_| FileError::invalid("a chunk of a page cannot be that large"))?;
        let word = (word | log).to_le_bytes();
        self.words.extend_from_slice(word.get(..size_bytes).unwrap_or_default());
        self.index_rows(entries);
        Ok(true)
    }

    /// Counts the rows that end in the chunk, and the entries behind the last of them.
    fn index_rows(&mut self, entries: Range<usize>) {
        let Some(rep) = &self.levels.rep else { return };
        let begins_row = |level: Option<&u16>| level.is_none_or(|level| *level == self.levels.max_rep);
        let within = rep.get(entries.clone()).unwrap_or_default();
        let begun = within.iter().skip(1).filter(|level| **level == self.levels.max_rep);
        let mut ended = begun.count() as u64;
        let mut left_over = 0;
        if begins_row(rep.get(entries.end)) {
            ended += 1;
        } else {
            let last = within.iter().rposition(|level| *level == self.levels.max_rep);
            left_over = (within.len() - last.unwrap_or(0)) as u64;
        }
        self.index.extend_from_slice(&ended.to_le_bytes());
        self.index.extend_from_slice(&left_over.to_le_bytes());
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.data.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    fn pad(&mut self) {
        pad(&mut self.data);
    }
}

fn pad(data: &mut Vec<u8>) {
    data.resize(data.len().next_multiple_of(8), FILL);
}
