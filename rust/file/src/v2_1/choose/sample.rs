//! What buffers become within general compression, from some of them.

use esker_codec::general_work::{work, Work};

use super::candidate::CHUNK_COST;
use super::price::{general_picos, Price};
use crate::error::Result;
use crate::v2_1::general::encode::{Around, Scheme};
use crate::v2_1::mini_block::encode::{ChunkBuffers, ChunkEncoder};

/// Chunks that are tried.
const TRIED: usize = 12;

/// Chunks are not enlarged beyond so many times.
const MOST_TIMES: usize = 8;

/// Bytes that an enlarged chunk holds at most before it is compressed.
const MOST_BYTES: usize = 32 * 1024;

/// Some buffers.
#[derive(Default)]
pub(super) struct Sample {
    /// Those that general compression goes around.
    buffers: Vec<Vec<u8>>,
    /// Bytes of others.
    rest: usize,
    /// Values in all of them.
    values: usize,
}

/// What general compression makes of chunks of `bytes` bytes, what chunks take besides included: how large they are, and what it costs.
pub(super) fn compressed_chunks(
    chunks: &dyn ChunkEncoder,
    len: usize,
    scheme: Scheme,
    bytes: usize,
    may_grow: bool,
) -> Result<(Around, Price)> {
    let first = Around { scheme, times: 1 };
    let sample = Sample::of(chunks, len, first)?;
    let raw = bytes.saturating_sub(sample.chunk_costs(len));
    let price = sample.compressed(scheme, raw)?.plus(sample.chunk_costs(len));
    // A chunk that shrinks to two thirds or less may hold twice the values, and so on.
    let times = price.bytes.max(1).saturating_mul(3);
    let times = (bytes.saturating_mul(4) / times).clamp(1, MOST_TIMES).ilog2();
    let largest = sample.buffers.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let room = (MOST_BYTES / largest).clamp(1, MOST_TIMES).ilog2();
    let times = 1 << times.min(room);
    if !may_grow || times == 1 {
        return Ok((first, price));
    }
    let around = Around { scheme, times };
    let sample = Sample::of(chunks, len, around)?;
    let price = sample.compressed(scheme, raw)?.plus(sample.chunk_costs(len));
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
            let size = around.chunk_len(chunks, at, len - at).clamp(1, len - at);
            let (mut data, mut sizes) = (Vec::new(), Vec::new());
            chunks.encode(at..at + size, &mut ChunkBuffers::new(&mut data, &mut sizes))?;
            data.truncate(sizes.first().copied().unwrap_or(0));
            sample.rest += sizes.iter().skip(1).sum::<usize>();
            sample.buffers.push(data);
            sample.values += size;
            end = at + size;
        }
        Ok(sample)
    }

    /// What chunks like these take besides their values, for `len` values.
    fn chunk_costs(&self, len: usize) -> usize {
        let per_chunk = (self.values / self.buffers.len().max(1)).max(1);
        len.div_ceil(per_chunk).saturating_mul(CHUNK_COST)
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
        let (mut out, mut sum, mut after) = (Vec::new(), Work::default(), self.rest);
        for buffer in &self.buffers {
            out.clear();
            scheme.compress(buffer, &mut out)?;
            let found = work(scheme.name, &out);
            sum.sequences += found.sequences;
            sum.coded_literals += found.coded_literals;
            sum.tables += found.tables;
            after += out.len();
        }
        let before = self.plain().max(1);
        let scaled = |part: u64| {
            let scaled = u128::from(part).saturating_mul(bytes as u128) / before as u128;
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        Ok(Price {
            bytes: usize::try_from(scaled(after as u64)).unwrap_or(usize::MAX),
            picos: scaled(general_picos(scheme, sum, before)),
        })
    }
}
