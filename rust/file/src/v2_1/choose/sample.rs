//! What buffers become within general compression, from some of them.

use esker_codec::general_work::{work, Work};

use super::candidate::{CHUNK_COST, PADDING};
use super::price::{general_picos, picos, Price, Step};
use crate::error::Result;
use crate::goal::Goal;
use crate::v2_1::general::encode::{Around, Scheme};
use crate::v2_1::mini_block::encode::{ChunkBuffers, ChunkEncoder};

/// Chunks that are tried.
const TRIED: usize = 12;

/// One in so many of them is tried first, from all over the page.
const TURNS: usize = 3;

/// What becomes so many hundredths of what is taken without compression, or of itself, after a third of the tries is not tried on.
const HOPELESS: u128 = 150;
const NO_GAIN: u128 = 98;

/// How much larger chunks may become that are compressed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Growth {
    /// Bytes of the file that a chunk aims at: whoever reads one value reads all of them.
    pub(super) stored: usize,
    /// Bytes that a chunk holds at most before it is compressed.
    pub(super) raw: usize,
    /// No chunk grows of what takes more bytes in small ones: large ones would not make it small enough.
    pub(super) most: usize,
    /// What the values take without compression, if the write need not try on whatever takes far more.
    pub(super) best: Option<usize>,
}

impl Growth {
    /// No chunk grows.
    pub(super) const NONE: Growth = Growth {
        stored: 0,
        raw: 0,
        most: 0,
        best: None,
    };

    /// Chunks of about `stored` bytes, or, for small files, as many as compression gains from. `best` is what is taken without.
    pub(super) fn new(stored: usize, goal: Goal, best: usize) -> Growth {
        const KIB: usize = 1024;
        match goal {
            Goal::Small => Growth {
                stored: 64 * KIB,
                raw: 64 * KIB,
                most: usize::MAX,
                best: None,
            },
            Goal::Fast | Goal::Balanced => Growth {
                stored,
                raw: 32 * KIB,
                most: best.saturating_mul(2),
                best: Some(best),
            },
        }
    }

    /// The same for chunks that do not grow.
    pub(super) fn fixed(self) -> Growth {
        Growth {
            best: self.best,
            ..Growth::NONE
        }
    }

    /// How many times as large chunks become, of which the largest has `largest` bytes and takes `stored` on average: a power of two.
    fn times(self, largest: usize, stored: usize) -> usize {
        let times = (self.stored / stored.max(1)).min(self.raw / largest.max(1));
        1 << times.max(1).ilog2()
    }
}

/// Some buffers.
#[derive(Default)]
pub(super) struct Sample {
    /// Those that general compression goes around.
    buffers: Vec<Vec<u8>>,
    /// Bytes of others.
    rest: usize,
}

/// What general compression makes of chunks of `bytes` bytes, what chunks take besides included: how large they are, and what it costs.
pub(super) fn compressed_chunks(
    chunks: &dyn ChunkEncoder,
    len: usize,
    scheme: Scheme,
    bytes: usize,
    growth: Growth,
) -> Result<(Around, Price)> {
    let first = Around { scheme, times: 1 };
    let sample = Sample::of(chunks, len, first)?;
    let raw = bytes.saturating_sub(sample.num_chunks(bytes).saturating_mul(CHUNK_COST));
    let price = sample.price(scheme, raw, growth.best)?;
    let largest = sample.buffers.iter().map(Vec::len).max().unwrap_or(0);
    let times = growth.times(largest, price.bytes / sample.num_chunks(raw).max(1));
    if times == 1 || price.bytes > growth.most {
        return Ok((first, price));
    }
    let around = Around { scheme, times };
    let price = Sample::of(chunks, len, around)?.price(scheme, raw, growth.best)?;
    Ok((around, price))
}

impl Sample {
    /// Encodes some of the chunks of `len` values, from all over the page.
    pub(super) fn of(chunks: &dyn ChunkEncoder, len: usize, around: Around) -> Result<Sample> {
        let mut sample = Sample::default();
        let step = (len / TRIED / 8 * 8).max(8);
        let mut end = 0;
        for at in (0..len).step_by(step) {
            if at < end {
                continue;
            }
            // The last chunk may be short, and padded: it stands for no other one.
            if sample.buffers.len() == TRIED {
                break;
            }
            let size = around.chunk_len(chunks, at, len - at).clamp(1, len - at);
            let (mut data, mut sizes) = (Vec::new(), Vec::new());
            chunks.encode(at..at + size, &mut ChunkBuffers::new(&mut data, &mut sizes))?;
            data.truncate(sizes.first().copied().unwrap_or(0));
            sample.rest += sizes.iter().skip(1).sum::<usize>();
            sample.buffers.push(data);
            end = at + size;
        }
        Ok(sample)
    }

    /// How many chunks like these `bytes` bytes make.
    fn num_chunks(&self, bytes: usize) -> usize {
        let per_chunk = (self.plain() / self.buffers.len().max(1)).max(1);
        bytes.div_ceil(per_chunk)
    }

    /// What values of `raw` bytes cost in chunks like these, about, if that is far more than `best`.
    fn price(&self, scheme: Scheme, raw: usize, best: Option<usize>) -> Result<Price> {
        let num_chunks = self.num_chunks(raw);
        let price = self.compressed_beside(scheme, raw, best)?;
        Ok(Price {
            picos: price.picos.saturating_add(picos(Step::Chunk, num_chunks, 0)),
            bytes: price.bytes.saturating_add(num_chunks.saturating_mul(CHUNK_COST)),
        })
    }

    /// Adds a buffer.
    pub(super) fn add(&mut self, buffer: &[u8]) {
        self.buffers.push(buffer.to_vec());
    }

    /// Bytes of what is tried.
    pub(super) fn plain(&self) -> usize {
        self.buffers.iter().map(Vec::len).sum::<usize>() + self.rest
    }

    /// What `bytes` bytes of the like become, and the time that it takes to undo that.
    pub(super) fn compressed(&self, scheme: Scheme, bytes: usize) -> Result<Price> {
        self.compressed_beside(scheme, bytes, None)
    }

    /// The same, of a part of the buffers if those show that it is hopeless beside `best` bytes.
    fn compressed_beside(&self, scheme: Scheme, bytes: usize, best: Option<usize>) -> Result<Price> {
        let (mut out, mut sum) = (Vec::new(), Work::default());
        let (mut before, mut after) = (0, 0);
        // From all over the page at first.
        let turns = (0..TURNS).flat_map(|turn| self.buffers.iter().skip(turn).step_by(TURNS));
        let first = self.buffers.len().div_ceil(TURNS);
        for (tried, buffer) in turns.enumerate() {
            if tried == first && is_hopeless(before, after, bytes, best) {
                break;
            }
            out.clear();
            scheme.compress(buffer, &mut out)?;
            let found = work(scheme.name, &out);
            sum.sequences += found.sequences;
            sum.coded_literals += found.coded_literals;
            sum.tables += found.tables;
            before += buffer.len();
            // Chunks are padded, and so is what CHUNK_COST says, on average.
            after += out.len().next_multiple_of(8).saturating_sub(PADDING);
        }
        // Of the others as much as belongs to what was tried.
        let all: usize = self.buffers.iter().map(Vec::len).sum();
        let rest = match before == all {
            true => self.rest,
            false => self.rest.saturating_mul(before) / all.max(1),
        };
        let (before, after) = ((before + rest).max(1), after + rest);
        let scaled = |part: u64| {
            let scaled = u128::from(part).saturating_mul(bytes as u128) / before as u128;
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        Ok(Price {
            bytes: usize::try_from(scaled(after as u64)).unwrap_or(usize::MAX),
            picos: scaled(general_picos(scheme, sum, before, after)),
        })
    }
}

/// Whether `bytes` bytes, of which `before` became `after`, stay far above `best`, or about what they are.
fn is_hopeless(before: usize, after: usize, bytes: usize, best: Option<usize>) -> bool {
    let Some(best) = best.filter(|_| before > 0) else {
        return false;
    };
    let [before, after, bytes, best] = [before, after, bytes, best].map(|bytes| bytes as u128);
    let becomes = after * bytes / before;
    becomes * 100 > best * HOPELESS || (becomes > best / 20 * 19 && after * 100 >= before * NO_GAIN)
}
