//! The candidates of a page, and which of them is taken.

use arrow_schema::DataType;

use super::constant::constant_of;
use super::dictionary::{dictionary_candidate, dictionary_estimate};
use super::fixed::fixed_candidates;
use super::price::{besides, picos, Price, Step};
use super::variable::{symbols_floor, variable_candidates};
use super::way::{Coding, Target, Way};
use crate::error::Result;
use crate::goal::Goal;
use crate::v2_1::fixed_size_list::encode as fixed_size_list;
use crate::v2_1::general::encode::Around;
use crate::v2_1::levels::serialize::Levels;
use crate::v2_1::values::LeafValues;

/// The overhead of a chunk in bytes: its word, its header and padding.
pub(super) const CHUNK_COST: usize = 14;

/// How much of it is padding.
pub(super) const PADDING: usize = 4;

/// In a balanced write a byte is worth so many picoseconds: about what it takes to get it from a store, or to write and to keep it.
const PICOS_PER_BYTE: u64 = 3500;

/// In a balanced write a read of compressed values may take so many percent of the time of others.
pub(super) const SLOWEST: u64 = 110;
const SLOWEST_DOUBLES: u64 = 130;
const SLOWEST_TEXTS: u64 = 120;

/// Where so many percent of the bytes are saved, all may take as much time as doubles.
const MUCH: usize = 25;

/// General compression that saves fewer percent of the bytes is not worth its time.
const LEAST_GAIN: usize = 10;

/// A way with its price.
pub(crate) struct Candidate {
    pub(crate) name: String,
    pub(crate) way: Way,
    pub(crate) price: Price,
    /// Why it cannot be taken.
    pub(crate) barred: Option<String>,
    /// Why it must be taken.
    pub(crate) asked: Option<String>,
}

impl Candidate {
    pub(super) fn new(name: impl Into<String>, way: Way, price: Price) -> Self {
        Candidate {
            name: name.into(),
            way,
            price,
            barred: None,
            asked: None,
        }
    }

    /// Chunks, within general compression where that is given.
    pub(super) fn chunks(coding: Coding, around: Option<Around>, price: Price) -> Self {
        let name = match around {
            Some(around) => format!("{}, {}", coding.name(), around.scheme.name),
            None => coding.name().to_string(),
        };
        Candidate::new(name, Way::Chunks(coding, around), price)
    }

    pub(super) fn barred_if(mut self, barred: bool, why: impl Into<String>) -> Self {
        if barred {
            self.barred = Some(why.into());
        }
        self
    }

    pub(super) fn asked_if(mut self, asked: bool, why: impl Into<String>) -> Self {
        if asked && self.barred.is_none() {
            self.asked = Some(why.into());
        }
        self
    }

    /// Whether general compression goes around its chunks. For the numbers of a dictionary that is decided beforehand.
    fn is_compressed(&self) -> bool {
        matches!(&self.way, Way::Chunks(_, Some(_)))
    }
}

/// The candidate that a hint asks for, else the best that is not barred.
pub(crate) fn choice(candidates: &[Candidate], values: &LeafValues, target: Target) -> Option<usize> {
    // Decimals that are stored as doubles compress well and are slow to pack, so a little more is allowed.
    let slowest = match (&target.leaf.data_type, values) {
        (DataType::Float64, _) => SLOWEST_DOUBLES,
        (_, LeafValues::Variable(_)) => SLOWEST_TEXTS,
        _ => SLOWEST,
    };
    choice_within(candidates, target, slowest, besides(values))
}

/// The same, where balanced compression may take `slowest` percent of the time of a read, which takes `besides` besides decoding.
pub(super) fn choice_within(candidates: &[Candidate], target: Target, slowest: u64, besides: u64) -> Option<usize> {
    let all = || candidates.iter().enumerate();
    let allowed = || all().filter(|(_, candidate)| candidate.barred.is_none());
    let asked = all().filter(|(_, candidate)| candidate.asked.is_some());
    if let Some((index, _)) = asked.min_by_key(|(_, candidate)| candidate.price.bytes) {
        return Some(index);
    }
    let smallest = allowed().min_by_key(|(_, candidate)| candidate.price.bytes);
    if target.hints().compression.is_some() {
        return smallest.map(|(index, _)| index);
    }
    let plain = allowed().filter(|(_, candidate)| !candidate.is_compressed());
    let (plain_index, plain) = plain.min_by_key(|(_, candidate)| candidate.price.bytes)?;
    let worth = |candidate: &Candidate, percent: usize| {
        candidate.price.bytes.saturating_mul(100) <= plain.price.bytes.saturating_mul(100 - percent)
    };
    match target.goal {
        Goal::Fast => Some(plain_index),
        Goal::Small => smallest
            .filter(|(_, candidate)| worth(candidate, 1))
            .map(|(index, _)| index)
            .or(Some(plain_index)),
        Goal::Balanced => {
            let slowest = |candidate: &Candidate| {
                let most = if worth(candidate, MUCH) {
                    SLOWEST_DOUBLES
                } else {
                    slowest
                };
                plain.price.picos.saturating_add(besides).saturating_mul(most) / 100
            };
            let score = |candidate: &Candidate| {
                let bytes = (candidate.price.bytes as u64).saturating_mul(PICOS_PER_BYTE);
                bytes.saturating_add(candidate.price.picos)
            };
            let better = allowed()
                .filter(|(_, candidate)| candidate.is_compressed() && worth(candidate, LEAST_GAIN))
                .filter(|(_, candidate)| candidate.price.picos.saturating_add(besides) <= slowest(candidate))
                .filter(|(_, candidate)| score(candidate) < score(plain));
            let best = better.min_by_key(|(_, candidate)| score(candidate));
            best.map(|(index, _)| index).or(Some(plain_index))
        }
    }
}

/// All ways to write values that are not all missing.
pub(crate) fn candidates(levels: &Levels, values: &LeafValues, target: Target) -> Result<Vec<Candidate>> {
    let mut out = Vec::new();
    // Its size is said in 32 bits.
    let constant = constant_of(levels, values).filter(|constant| u32::try_from(constant.len()).is_ok());
    if let Some(constant) = constant {
        // Its levels are plain, two bytes each.
        let kinds = usize::from(levels.rep.is_some()) + usize::from(levels.def.is_some());
        let bytes = constant.len() + levels.num_entries.saturating_mul(2 * kinds);
        let later = target.version >= crate::version::FileVersion::V2_2;
        let price = Price { bytes, picos: 0 };
        out.push(Candidate::new("constant", Way::Constant(constant), price).barred_if(!later, "version 2.2 has it"));
        if kinds == 0 && later {
            return Ok(out);
        }
    }
    match values {
        LeafValues::Fixed(fixed) => {
            let width = fixed.bits / 8;
            if fixed.bits.is_multiple_of(8) && target.zips(width) {
                let bytes = fixed.len.saturating_mul(width);
                let picos = picos(Step::Flat, fixed.len, bytes);
                out.push(Candidate::new("full zip", Way::Zip, Price { bytes, picos }));
            } else {
                out.extend(fixed_candidates(fixed, target)?);
            }
            if let Some(estimated) = dictionary_estimate(values, target)? {
                out.push(dictionary_candidate(values, &estimated, least(&out, target), target)?);
            }
        }
        LeafValues::Variable(variable) => {
            // If FSST cannot beat the dictionary's estimate, no symbols are trained; if it can, it is tried first, as it is cheaper than
            // finding distinct values.
            let estimated = dictionary_estimate(values, target)?;
            let first = estimated
                .as_ref()
                .is_some_and(|found| found.bytes < symbols_floor(variable));
            if let Some(estimated) = estimated.as_ref().filter(|_| first) {
                let best = values_bytes(values).min(least(&out, target));
                let found = dictionary_candidate(values, estimated, best, target)?;
                let bytes = match &found.barred {
                    None => found.price.bytes,
                    Some(_) => usize::MAX,
                };
                out.extend(variable_candidates(levels, variable, bytes, target)?);
                out.push(found);
            } else {
                out.extend(variable_candidates(levels, variable, usize::MAX, target)?);
                if let Some(estimated) = &estimated {
                    out.push(dictionary_candidate(values, estimated, least(&out, target), target)?);
                }
            }
        }
        // These have one way each.
        LeafValues::Nothing(_)
        | LeafValues::FixedSizeList(_)
        | LeafValues::Packed(_)
        | LeafValues::Dictionary(_, _) => {}
    }
    Ok(out)
}

/// Bytes of the smallest that may be taken, as far as that is known already.
fn least(candidates: &[Candidate], target: Target) -> usize {
    let by_bytes = target.goal == Goal::Small || target.hints().compression.is_some();
    let allowed = candidates
        .iter()
        .filter(|candidate| candidate.barred.is_none() && (by_bytes || !candidate.is_compressed()));
    allowed
        .map(|candidate| candidate.price.bytes)
        .min()
        .unwrap_or(usize::MAX)
}

/// Bytes of values in chunks, with what chunks take besides.
pub(super) fn with_chunks(bytes: usize, values: usize, per_chunk: usize) -> usize {
    bytes.saturating_add(values.div_ceil(per_chunk.max(1)).saturating_mul(CHUNK_COST))
}

/// Bytes of the values as they are.
pub(crate) fn values_bytes(values: &LeafValues) -> usize {
    match values {
        LeafValues::Variable(variable) => variable.bytes.len() + variable.len() * (variable.offset_bits() / 8),
        LeafValues::Fixed(fixed) | LeafValues::Dictionary(fixed, _) => fixed.len.saturating_mul(fixed.bits) / 8,
        LeafValues::FixedSizeList(lists) => fixed_size_list::zipped_width(lists).saturating_mul(lists.len),
        LeafValues::Packed(fields) => fields.iter().map(values_bytes).sum(),
        LeafValues::Nothing(_) => 0,
    }
}
