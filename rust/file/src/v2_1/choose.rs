//! Chooses the layout and the compression of a page.
//!
//! Every way to write a page is a candidate with its size in bytes, counted or estimated from the values. The smallest is chosen, unless it
//! is barred or a hint asks for another.
//!
//! | the values | candidates | barred |
//! |---|---|---|
//! | none is there | constant, only levels | |
//! | all the same | constant | before version 2.2 |
//! | of 8 to 64 bits | flat, bit packed, runs, split bytes | runs beyond rle-threshold, if given; split bytes without general compression |
//! | other fixed width | flat | |
//! | of any length | variable, symbols | symbols where they gain nothing |
//! | repeated, of 32 bits and more or any length | dictionary, its indices as values of 32 bits | beyond dict-divisor or dict-size-ratio; of 32 bits where it gains less than a fifth |
//! | 256 bytes and more on average | full zip: as they are, as symbols, each compressed by itself | mini-block |
//! | fixed-size lists | mini-block below 256 bytes, full zip above | |
//! | packed structs | mini-block | |
//! | dictionary columns | dictionary, indices as wide as the keys | |
//!
//! General compression, if it is asked for, goes around what is chosen, chunk by chunk, if that makes a page smaller.

use bytes::Bytes;

use arrow_buffer::BooleanBuffer;

use super::byte_stream_split::encode::SplitChunks;
use super::dictionary::encode::{self as dictionary, Distinct};
use super::fixed_size_list::encode as fixed_size_list;
use super::flat::encode::FlatChunks;
use super::fsst::encode::{self as fsst, Trained};
use super::general::encode::{GeneralChunks, Scheme};
use super::hints::{Compression, Hints, Structure};
use super::inline_bitpacking::encode::PackedChunks;
use super::levels::serialize::Levels;
use super::mini_block::encode::{self as mini_block, ChunkBuffers, ChunkEncoder, EncodedDictionary};
use super::path::Leaf;
use super::run_length::encode::{RunChunks, MAX_RUN};
use super::statistics::statistics;
use super::values::{FixedWidth, LeafValues, VariableWidth};
use crate::error::Result;
use crate::version::FileVersion;

/// From this average size in bytes on, values are written as full zip instead of in mini-blocks.
const WIDE_VALUE: usize = 256;

/// From this size in bytes on, values may be worth compressing one by one.
const HUGE_VALUE: usize = 32 * 1024;

/// Pages of fewer values are not worth a dictionary of their own.
const MIN_DICTIONARY_VALUES: usize = 100;

/// The overhead of a chunk in bytes: its word, its header and padding.
const CHUNK_COST: usize = 14;

/// The best compression ratio of FSST that is assumed for values and offsets.
const SYMBOLS_GAIN: usize = 4;

/// A way to write the values of a page.
pub(super) enum Way {
    Constant(Bytes),
    Flat,
    Packed,
    Runs,
    Split,
    Variable,
    Symbols(Trained),
    Dictionary(Box<Distinct>),
    Zip,
    ZipSymbols(Trained),
    ZipCompressed(Scheme),
    /// Only counted: what it would take was estimated, and too much.
    Unmade,
}

/// A way with its price.
pub(super) struct Candidate {
    pub(super) name: &'static str,
    pub(super) way: Way,
    pub(super) bytes: usize,
    /// Why it cannot be taken.
    pub(super) barred: Option<String>,
    /// Why it must be taken.
    pub(super) asked: Option<String>,
}

impl Candidate {
    fn new(name: &'static str, way: Way, bytes: usize) -> Self {
        Candidate {
            name,
            way,
            bytes,
            barred: None,
            asked: None,
        }
    }

    fn barred_if(mut self, barred: bool, why: impl Into<String>) -> Self {
        if barred {
            self.barred = Some(why.into());
        }
        self
    }

    fn asked_if(mut self, asked: bool, why: impl Into<String>) -> Self {
        if asked && self.barred.is_none() {
            self.asked = Some(why.into());
        }
        self
    }
}

/// What a page is written for.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) leaf: &'a Leaf,
    pub(super) version: FileVersion,
}

impl Target<'_> {
    pub(super) fn large(&self) -> bool {
        self.version == FileVersion::V2_2
    }

    pub(super) fn hints(&self) -> &Hints {
        &self.leaf.hints
    }

    pub(super) fn zips(&self, average: usize) -> bool {
        match self.hints().structure {
            Some(structure) => structure == Structure::FullZip,
            None => average >= WIDE_VALUE,
        }
    }
}

/// The candidate that a hint asks for, else the smallest that is not barred (the first of equal ones).
pub(super) fn choice(candidates: &[Candidate]) -> Option<usize> {
    let asked = candidates.iter().position(|candidate| candidate.asked.is_some());
    asked.or_else(|| {
        let allowed = candidates
            .iter()
            .enumerate()
            .filter(|(_, candidate)| candidate.barred.is_none());
        let least = allowed.min_by_key(|(_, candidate)| candidate.bytes);
        least.map(|(index, _)| index)
    })
}

pub(super) fn candidates(levels: &Levels, values: &LeafValues, target: Target) -> Result<Vec<Candidate>> {
    let mut out = Vec::new();
    if let Some(constant) = constant_of(levels, values) {
        // Its levels are plain, two bytes each.
        let kinds = usize::from(levels.rep.is_some()) + usize::from(levels.def.is_some());
        let bytes = constant.len() + levels.num_entries.saturating_mul(2 * kinds);
        let later = target.version >= FileVersion::V2_2;
        out.push(Candidate::new("constant", Way::Constant(constant), bytes).barred_if(!later, "version 2.2 has it"));
        if kinds == 0 && later {
            return Ok(out);
        }
    }
    match values {
        LeafValues::Fixed(fixed) if fixed.bits.is_multiple_of(8) && target.zips(fixed.bits / 8) => {
            out.push(Candidate::new(
                "full zip",
                Way::Zip,
                fixed.len.saturating_mul(fixed.bits / 8),
            ));
            if let Some(estimated) = dictionary_estimate(values, target) {
                out.push(dictionary_candidate(values, &estimated, least(&out), target)?);
            }
        }
        LeafValues::Fixed(fixed) => {
            out.extend(fixed_candidates(fixed, target)?);
            if let Some(estimated) = dictionary_estimate(values, target) {
                out.push(dictionary_candidate(values, &estimated, least(&out), target)?);
            }
        }
        LeafValues::Variable(variable) => {
            // If FSST cannot beat the dictionary's estimate, no symbols are trained; if it can, it is tried first, as it is cheaper than
            // finding distinct values.
            let estimated = dictionary_estimate(values, target);
            let small = values_bytes(values) / SYMBOLS_GAIN;
            let first = estimated.as_ref().is_some_and(|found| found.bytes < small);
            if let Some(estimated) = estimated.as_ref().filter(|_| first) {
                let best = values_bytes(values).min(least(&out));
                let found = dictionary_candidate(values, estimated, best, target)?;
                let bytes = if found.barred.is_none() {
                    found.bytes
                } else {
                    usize::MAX
                };
                out.extend(variable_candidates(levels, variable, bytes, target)?);
                out.push(found);
            } else {
                out.extend(variable_candidates(levels, variable, usize::MAX, target)?);
                if let Some(estimated) = &estimated {
                    out.push(dictionary_candidate(values, estimated, least(&out), target)?);
                }
            }
        }
        _ => {}
    }
    Ok(out)
}

/// Bytes of the smallest that may be taken.
fn least(candidates: &[Candidate]) -> usize {
    let allowed = candidates.iter().filter(|candidate| candidate.barred.is_none());
    allowed.map(|candidate| candidate.bytes).min().unwrap_or(usize::MAX)
}

/// The value that all have, if they have.
fn constant_of(levels: &Levels, values: &LeafValues) -> Option<Bytes> {
    let mut valid: Box<dyn Iterator<Item = bool>> = match levels.validity() {
        Some(valid) => Box::new(valid),
        None => Box::new(std::iter::repeat(true)),
    };
    match values {
        LeafValues::Fixed(fixed) if fixed.bits == 1 => {
            let bits = BooleanBuffer::new(fixed.contiguous(), 0, fixed.len);
            let mut there = bits.iter().zip(valid).filter(|(_, valid)| *valid).map(|(bit, _)| bit);
            let first = there.next()?;
            there
                .all(|bit| bit == first)
                .then(|| Bytes::copy_from_slice(&[u8::from(first)]))
        }
        LeafValues::Fixed(fixed) if fixed.bits.is_multiple_of(8) => {
            let bytes = fixed.contiguous();
            same(bytes.chunks_exact((fixed.bits / 8).max(1)), &mut *valid)
        }
        LeafValues::Variable(variable) => same(variable.iter(), &mut *valid),
        _ => None,
    }
}

fn same<'a>(values: impl Iterator<Item = &'a [u8]>, valid: &mut dyn Iterator<Item = bool>) -> Option<Bytes> {
    let mut first = None;
    for (value, valid) in values.zip(valid) {
        if valid && *first.get_or_insert(value) != value {
            return None;
        }
    }
    first.map(Bytes::copy_from_slice)
}

fn with_chunks(bytes: usize, values: usize, per_chunk: usize) -> usize {
    bytes.saturating_add(values.div_ceil(per_chunk.max(1)).saturating_mul(CHUNK_COST))
}

/// Ways to write values of one width in chunks, as the column asks for it.
fn fixed_candidates(fixed: &FixedWidth, target: Target) -> Result<Vec<Candidate>> {
    chunk_candidates(fixed, target.hints())
}

/// Ways to write the numbers of a dictionary's values: what is asked for is asked of the values, not of them.
pub(super) fn index_candidates(indices: &FixedWidth, target: Target) -> Result<Vec<Candidate>> {
    let hints = Hints {
        compression: target.hints().general().map(Compression::General),
        ..Hints::default()
    };
    chunk_candidates(indices, &hints)
}

fn chunk_candidates(fixed: &FixedWidth, hints: &Hints) -> Result<Vec<Candidate>> {
    let bytes = fixed.contiguous();
    let per_chunk = mini_block::fixed_chunk_len(fixed.bits, fixed.len);
    let flat = with_chunks(bytes.len(), fixed.len, per_chunk);
    let mut out = vec![Candidate::new("flat", Way::Flat, flat)];
    let Some(found) = statistics(fixed.bits, bytes.as_slice()) else {
        return Ok(out);
    };
    let plain = hints.compression == Some(Compression::Plain);
    let packed = with_chunks(found.packed_bytes, fixed.len, 1024);
    let runs = found.runs + fixed.len / MAX_RUN;
    let runs_bytes = with_chunks(runs * (fixed.bits / 8 + 1), fixed.len, 2048) + fixed.len.div_ceil(2048) * 8;
    let threshold = hints.rle_threshold;
    let within = threshold.is_none_or(|threshold| (found.runs as f64) < fixed.len as f64 * threshold);
    out.push(Candidate::new("bit packed", Way::Packed, packed).barred_if(plain, "no compression is asked for"));
    out.push(
        Candidate::new("runs", Way::Runs, runs_bytes)
            .barred_if(plain, "no compression is asked for")
            .barred_if(!within, "more runs than rle-threshold allows")
            .asked_if(threshold.is_some(), "rle-threshold asks for it"),
    );
    if let (Some(scheme), 32 | 64) = (hints.general(), fixed.bits) {
        let off = hints.split_bytes == Some(false);
        out.push(
            Candidate::new("split bytes", Way::Split, flat)
                .barred_if(off, "bss is off")
                .asked_if(hints.split_bytes == Some(true), "bss asks for it"),
        );
        for candidate in &mut out {
            let chunks = fixed_chunks(fixed, &candidate.way);
            candidate.bytes = compressed_size(&*chunks, fixed.len, scheme, candidate.bytes)?;
        }
    }
    Ok(out)
}

pub(super) fn fixed_chunks(fixed: &FixedWidth, way: &Way) -> Box<dyn ChunkEncoder> {
    let (bits, bytes) = (fixed.bits, fixed.contiguous());
    match way {
        Way::Packed => Box::new(PackedChunks { bits, bytes }),
        Way::Runs => Box::new(RunChunks { bits, bytes }),
        Way::Split => Box::new(SplitChunks { bits, bytes }),
        _ => Box::new(FlatChunks { bits, bytes }),
    }
}

/// About what general compression makes of chunks, from some of them.
pub(super) fn compressed_size(chunks: &dyn ChunkEncoder, len: usize, scheme: Scheme, plain: usize) -> Result<usize> {
    const TRIED: usize = 8;
    let per_chunk = chunks.chunk_len(0, len).max(1);
    let step = (len / per_chunk / TRIED).max(1) * per_chunk;
    let compressed = GeneralChunks { scheme, inner: chunks };
    let (mut before, mut after) = (0, 0);
    for at in (0..len).step_by(step) {
        let range = at..(at + per_chunk).min(len);
        for (chunks, size) in [(chunks, &mut before), (&compressed as &dyn ChunkEncoder, &mut after)] {
            let (mut data, mut sizes) = (Vec::new(), Vec::new());
            chunks.encode(range.clone(), &mut ChunkBuffers::new(&mut data, &mut sizes))?;
            *size += sizes.iter().sum::<usize>();
        }
    }
    Ok(plain.saturating_mul(after.min(before)) / before.max(1))
}

fn variable_candidates(
    levels: &Levels,
    variable: &VariableWidth,
    dictionary: usize,
    target: Target,
) -> Result<Vec<Candidate>> {
    let hints = target.hints();
    let len = variable.len();
    let average = variable.bytes.len() / len.max(1);
    let offsets = len.saturating_mul(variable.offset_bits() / 8);
    let forced = hints.compression == Some(Compression::Fsst);
    let tried = match hints.compression {
        Some(Compression::Plain) => None,
        // No symbols make values so small.
        _ if dictionary < (variable.bytes.len() + offsets) / SYMBOLS_GAIN => None,
        _ => fsst::train(variable, forced),
    };
    let symbols = |trained: &Trained, rest: usize| {
        let coded = trained.coded_size(variable.bytes.len());
        coded.saturating_add(rest).saturating_add(fsst::TABLE_BYTES)
    };
    if !target.zips(average) {
        let rest = with_chunks(offsets, len, 4096 / (average + 4).max(1));
        let plain = Candidate::new("variable", Way::Variable, variable.bytes.len() + rest);
        let mut out = vec![plain.barred_if(forced, "compression asks for symbols")];
        if let Some(trained) = tried {
            let bytes = symbols(&trained, rest);
            out.push(Candidate::new("symbols", Way::Symbols(trained), bytes));
        }
        return Ok(out);
    }
    let plain = Candidate::new("full zip", Way::Zip, variable.bytes.len() + offsets);
    let mut out = vec![plain.barred_if(forced, "compression asks for symbols")];
    if let Some(trained) = tried {
        let bytes = symbols(&trained, offsets);
        out.push(Candidate::new("full zip of symbols", Way::ZipSymbols(trained), bytes));
    }
    let longest = variable.iter().map(<[u8]>::len).max().unwrap_or(0);
    let scheme = hints.general();
    if scheme.is_some() || (longest > HUGE_VALUE && hints.compression.is_none()) {
        let scheme = scheme.unwrap_or(Scheme::ZSTD);
        let bytes = compressed_values_size(variable, scheme)?.saturating_add(offsets);
        let has_nulls = levels.num_valid < levels.num_visible;
        out.push(
            Candidate::new("full zip of compressed values", Way::ZipCompressed(scheme), bytes)
                .barred_if(
                    has_nulls && !scheme.reads_nulls(),
                    "pylance reads no nulls among such values",
                )
                .asked_if(hints.general().is_some(), "compression asks for it"),
        );
    }
    Ok(out)
}

/// About what the values take, each compressed by itself, from some of them.
fn compressed_values_size(variable: &VariableWidth, scheme: Scheme) -> Result<usize> {
    const TRIED: usize = 4;
    let step = (variable.len() / TRIED).max(1);
    let (mut before, mut compressed) = (0_usize, Vec::new());
    for index in (0..variable.len()).step_by(step) {
        // The first part of a value tells enough.
        let value = variable.get(index);
        let part = value.get(..value.len().min(4 * HUGE_VALUE)).unwrap_or(value);
        before += part.len();
        scheme.compress(part, &mut compressed)?;
    }
    Ok(variable.bytes.len().saturating_mul(compressed.len()) / before.max(1))
}

/// What a dictionary is thought to cost.
struct DictionaryEstimate {
    distinct: usize,
    bytes: usize,
    /// Bytes of a value with its offset.
    value_bytes: usize,
}

impl DictionaryEstimate {
    /// What a dictionary of `distinct` values costs `len` values.
    fn price(len: usize, distinct: usize, value_bytes: usize) -> usize {
        let bits = usize::try_from(distinct.max(2).ilog2()).unwrap_or(0) + 1;
        let indices = with_chunks(len * bits / 8, len, 1024);
        indices.saturating_add(distinct.saturating_mul(value_bytes))
    }
}

/// What a dictionary of the values would cost, if they may have one.
fn dictionary_estimate(values: &LeafValues, target: Target) -> Option<DictionaryEstimate> {
    let len = values.len();
    let value_bytes = match values {
        LeafValues::Variable(variable) => variable.bytes.len() / len.max(1) + variable.offset_bits() / 8,
        LeafValues::Fixed(fixed) if fixed.bits >= 32 => fixed.bits / 8,
        _ => return None,
    };
    if len < MIN_DICTIONARY_VALUES || target.hints().structure == Some(Structure::FullZip) {
        return None;
    }
    let distinct = dictionary::estimate(values);
    Some(DictionaryEstimate {
        distinct,
        bytes: DictionaryEstimate::price(len, distinct, value_bytes),
        value_bytes,
    })
}

/// A dictionary of the values; unmade if it is not worth its price beside `best`.
fn dictionary_candidate(
    values: &LeafValues,
    estimated: &DictionaryEstimate,
    best: usize,
    target: Target,
) -> Result<Candidate> {
    let hints = target.hints();
    let len = values.len();
    let asked = hints.dict_divisor.is_some() || hints.dict_size_ratio.is_some();
    let limit = match hints.dict_divisor {
        Some(divisor) => usize::try_from(len as u64 / divisor).unwrap_or(len),
        None => len / 2,
    };
    let unmade = |bytes: usize, why: &str| Candidate::new("dictionary", Way::Unmade, bytes).barred_if(true, why);
    if !asked && estimated.bytes >= best {
        return Ok(unmade(estimated.bytes, "larger, by an estimate of the distinct values"));
    }
    let Some(found) = dictionary::distinct(values, limit) else {
        let distinct = estimated.distinct.max(limit);
        return Ok(unmade(
            DictionaryEstimate::price(len, distinct, estimated.value_bytes),
            "more distinct values than a dictionary is worth",
        ));
    };
    let indices = index_candidates(&found.indices, target)?;
    let indices_bytes = choice(&indices)
        .and_then(|index| indices.get(index))
        .map_or(0, |best| best.bytes);
    let items = encode_items(&found.items, target)?;
    let bytes = indices_bytes.saturating_add(items.bytes.len());
    let plain = values_bytes(values);
    let ratio = hints.dict_size_ratio;
    let beyond = ratio.is_some_and(|ratio| bytes as f64 > plain as f64 * ratio);
    // Narrow numbers are read faster without a dictionary, so the gain must be worth it.
    let narrow = matches!(values, LeafValues::Fixed(fixed) if fixed.bits <= 32);
    let slower = narrow && !asked && bytes.saturating_mul(5) > best.saturating_mul(4);
    Ok(Candidate::new("dictionary", Way::Dictionary(Box::new(found)), bytes)
        .barred_if(beyond, "larger than dict-size-ratio allows")
        .barred_if(slower, "hardly smaller, and slower to read")
        .asked_if(asked, "dict-divisor or dict-size-ratio ask for it"))
}

pub(super) fn values_bytes(values: &LeafValues) -> usize {
    match values {
        LeafValues::Variable(variable) => variable.bytes.len() + variable.len() * (variable.offset_bits() / 8),
        LeafValues::Fixed(fixed) => fixed.len.saturating_mul(fixed.bits) / 8,
        LeafValues::FixedSizeList(lists) => fixed_size_list::zipped_width(lists).saturating_mul(lists.len),
        _ => 0,
    }
}

pub(super) fn encode_items(items: &LeafValues, target: Target) -> Result<EncodedDictionary> {
    let compression = match target.hints().dict_values {
        Some(Compression::General(scheme)) => Some(scheme),
        Some(_) => None,
        None => Some(Scheme::LZ4),
    };
    dictionary::encode_items(&target.leaf.name, items, compression, target.large())
}
