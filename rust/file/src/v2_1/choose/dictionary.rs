//! Dictionaries: whether distinct values, once each, and their numbers are worth it.

use super::candidate::{values_bytes, with_chunks, Candidate};
use super::fixed::{index_plan, Plan};
use super::price::{besides, picos, Price, Step};
use super::way::{Coding, Target, Way};
use crate::error::Result;
use crate::goal::Goal;
use crate::v2_1::dictionary::encode::{self as dictionary, Distinct, Repeats};
use crate::v2_1::general::encode::{Around, Scheme};
use crate::v2_1::hints::{Compression, Structure};
use crate::v2_1::mini_block::encode::EncodedDictionary;
use crate::v2_1::run_length::encode::MAX_RUN;
use crate::v2_1::values::{FixedWidth, LeafValues, VariableWidth};

/// Pages of fewer values are not worth a dictionary of their own.
const MIN_VALUES: usize = 100;

/// A dictionary of more stored bytes has to gain a fifth: whoever reads a few values reads all of it.
const MANY_BYTES: usize = 256 * 1024;

/// Bytes of values that are tried as items.
const TRIED_BYTES: usize = 96 * 1024;

/// Bytes of a value are estimated in thousandths.
const THOUSAND: usize = 1000;

/// Items that are this part of their numbers' bytes or more are compressed as well as can be,
const WORTH_TIME: usize = 16;

/// if they are this part of the values' bytes, too: otherwise all of the page is next to nothing.
const WORTH_BYTES: usize = 128;

/// A dictionary, encoded, and how its numbers are to be.
pub(crate) struct PlannedDictionary {
    pub(crate) indices: FixedWidth,
    pub(crate) coding: Coding,
    pub(crate) around: Option<Around>,
    pub(crate) items: EncodedDictionary,
}

/// What a dictionary is thought to cost.
pub(super) struct Estimate {
    repeats: Repeats,
    pub(super) bytes: usize,
    /// Bytes of a value with its offset, in thousandths.
    value_bytes: usize,
}

/// Bytes of the number of a run and of its length.
const RUN_BYTES: usize = 5;

/// What a dictionary of `distinct` values costs `len` values, in so many runs. Bytes of a value are in thousandths.
fn estimated_bytes(len: usize, Repeats { distinct, runs }: Repeats, value_bytes: usize) -> usize {
    let bits = usize::try_from((distinct.max(2) - 1).ilog2()).unwrap_or(0) + 1;
    let packed = with_chunks(len * bits / 8, len, 1024);
    let repeated = with_chunks(runs.saturating_add(len / MAX_RUN).saturating_mul(RUN_BYTES), len, 2048);
    let items = distinct.saturating_mul(value_bytes) / THOUSAND;
    packed.min(repeated).saturating_add(items)
}

/// Bytes of values of any length as items of a dictionary, in thousandths: with their offsets, and compressed as items are at least.
fn item_bytes(values: &VariableWidth, target: Target) -> Result<usize> {
    let size = |bytes: usize| bytes.saturating_mul(THOUSAND);
    let plain = size(values.bytes.len()) / values.len().max(1) + size(values.offset_bits() / 8);
    if matches!(target.hints().dict_values, Some(Compression::Plain)) {
        return Ok(plain);
    }
    // Values that come again would be taken for items that are like each other.
    let Some(some) = dictionary::distinct(&LeafValues::Variable(values.some(TRIED_BYTES)), usize::MAX) else {
        return Ok(plain);
    };
    let items = dictionary::encode_items(&target.leaf.name, &some.items, &[Scheme::LZ4], target.large())?;
    Ok(plain.min(size(items.bytes.len()) / some.items.len().max(1)))
}

/// What a dictionary of the values would cost, if they may have one.
pub(super) fn dictionary_estimate(values: &LeafValues, target: Target) -> Result<Option<Estimate>> {
    let len = values.len();
    if len < MIN_VALUES || target.hints().structure == Some(Structure::FullZip) {
        return Ok(None);
    }
    let value_bytes = match values {
        LeafValues::Variable(variable) => item_bytes(variable, target)?,
        LeafValues::Fixed(fixed) if fixed.bits >= 16 => fixed.bits * THOUSAND / 8,
        _ => return Ok(None),
    };
    let repeats = dictionary::estimate(values);
    Ok(Some(Estimate {
        repeats,
        bytes: estimated_bytes(len, repeats, value_bytes),
        value_bytes,
    }))
}

/// A dictionary of the values; unmade if it is not worth its price beside `best`.
pub(super) fn dictionary_candidate(
    values: &LeafValues,
    estimated: &Estimate,
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
    let unmade = |bytes: usize, why: &str| {
        let price = Price { bytes, picos: u64::MAX };
        Candidate::new("dictionary", Way::Unmade, price).barred_if(true, why)
    };
    // Numbers that repeat are compressed, which is not estimated: where the write may take its time, it is tried. All items together become
    // somewhat smaller than some of them.
    let hopeful = match (target.goal, values) {
        (Goal::Small, _) => estimated.bytes / 8,
        (Goal::Fast | Goal::Balanced, LeafValues::Variable(_)) => estimated.bytes / 4 * 3,
        (Goal::Fast | Goal::Balanced, _) if is_narrow(values) => estimated.bytes / 4 * 5,
        (Goal::Fast | Goal::Balanced, _) => estimated.bytes,
    };
    if !asked && hopeful >= best {
        return Ok(unmade(estimated.bytes, "larger, by an estimate of the distinct values"));
    }
    let too_many = |repeats: Repeats| {
        unmade(
            estimated_bytes(len, repeats, estimated.value_bytes),
            "more distinct values than a dictionary is worth",
        )
    };
    // The estimate is not exact; far beyond the limit there is no need to find out.
    if !asked && estimated.repeats.distinct > limit.saturating_add(limit / 8) {
        return Ok(too_many(estimated.repeats));
    }
    let Some(found) = dictionary::distinct(values, limit) else {
        let distinct = estimated.repeats.distinct.max(limit);
        return Ok(too_many(Repeats {
            distinct,
            runs: estimated.repeats.runs.max(distinct),
        }));
    };
    let plain = values_bytes(values);
    let (step, made) = match values {
        LeafValues::Variable(variable) => (Step::LookUpVariable, variable.bytes.len()),
        _ => (Step::LookUp, plain),
    };
    let (num_items, raw_items) = (found.items.len(), values_bytes(&found.items));
    let shared = picos(step, len, made).saturating_add(picos(Step::Variable, num_items, raw_items));
    let Ordered {
        indices,
        items,
        plan: Plan { coding, around, price },
    } = ordered(found, plain, besides(values).saturating_add(shared), target)?;
    let bytes = price.bytes.saturating_add(items.bytes.len());
    let price = Price {
        bytes,
        picos: price.picos.saturating_add(shared),
    };
    let ratio = hints.dict_size_ratio;
    let beyond = ratio.is_some_and(|ratio| bytes as f64 > plain as f64 * ratio);
    // Narrow numbers are read faster without a dictionary, so the gain must be worth it.
    let costly = target.goal != Goal::Small && (is_narrow(values) || items.bytes.len() > MANY_BYTES);
    let slower = costly && !asked && bytes.saturating_mul(5) > best.saturating_mul(4);
    let planned = PlannedDictionary {
        indices,
        coding,
        around,
        items,
    };
    Ok(Candidate::new("dictionary", Way::Dictionary(Box::new(planned)), price)
        .barred_if(beyond, "larger than dict-size-ratio allows")
        .barred_if(slower, "hardly smaller, and slower to read")
        .asked_if(asked, "dict-divisor or dict-size-ratio ask for it"))
}

/// Whether values are read about as fast as the numbers of a dictionary.
fn is_narrow(values: &LeafValues) -> bool {
    matches!(values, LeafValues::Fixed(fixed) if fixed.bits <= 32)
}

/// A dictionary with its items in one order.
struct Ordered {
    indices: FixedWidth,
    items: EncodedDictionary,
    plan: Plan,
}

/// Items in the order in which they come, which keeps the numbers of the first values small, or sorted, where neighbours share bytes: what
/// takes fewer bytes. `plain` is what the values take as they are.
fn ordered(found: Distinct, plain: usize, besides: u64, target: Target) -> Result<Ordered> {
    let schemes = item_schemes(&found.items, found.indices.len, target);
    let encoded = |found: &Distinct, schemes: &[Scheme]| {
        dictionary::encode_items(&target.leaf.name, &found.items, schemes, target.large())
    };
    let plan = index_plan(&found.indices, besides, target)?;
    // Items that are hardly any of it are not worth sorting.
    if target.goal == Goal::Fast || values_bytes(&found.items) < plan.price.bytes / 64 {
        return Ok(Ordered {
            items: encoded(&found, &schemes)?,
            plan,
            indices: found.indices,
        });
    }
    // The first scheme is the fastest, and tells well enough which order is the better one.
    let tried = if target.goal == Goal::Small { schemes.len() } else { 1 };
    let quick = schemes.get(..tried).unwrap_or_default();
    let items = encoded(&found, quick)?;
    let sorted = found.clone().sorted();
    let sorted_items = encoded(&sorted, quick)?;
    let sorted_plan = index_plan(&sorted.indices, besides, target)?;
    let bytes = |items: &EncodedDictionary, plan: &Plan| items.bytes.len().saturating_add(plan.price.bytes);
    let (found, items, plan) = if bytes(&sorted_items, &sorted_plan) < bytes(&items, &plan) {
        (sorted, sorted_items, sorted_plan)
    } else {
        (found, items, plan)
    };
    let mut items = items;
    for scheme in schemes.get(tried..).unwrap_or_default() {
        // It takes a hundred times as long, and is not always smaller.
        let worth = (plan.price.bytes / WORTH_TIME).max(plain / WORTH_BYTES);
        if *scheme == Scheme::THOROUGH && items.bytes.len() < worth {
            continue;
        }
        let other = encoded(&found, std::slice::from_ref(scheme))?;
        if other.bytes.len() < items.bytes.len() {
            items = other;
        }
    }
    Ok(Ordered {
        items,
        plan,
        indices: found.indices,
    })
}

/// The distinct values of `len` values, encoded.
pub(crate) fn encode_items(items: &LeafValues, len: usize, target: Target) -> Result<EncodedDictionary> {
    let schemes = item_schemes(items, len, target);
    dictionary::encode_items(&target.leaf.name, items, &schemes, target.large())
}

/// What is tried around the distinct values of `len` values, the fastest first.
fn item_schemes(items: &LeafValues, len: usize, target: Target) -> Vec<Scheme> {
    let mut schemes = match (target.hints().dict_values, target.goal) {
        (Some(Compression::General(scheme)), _) => vec![scheme],
        (Some(_), _) => Vec::new(),
        (None, Goal::Fast) => vec![Scheme::LZ4],
        (None, Goal::Balanced) => {
            let is_text = matches!(items, LeafValues::Variable(_));
            let mut schemes = vec![Scheme::LZ4, Scheme::ZSTD];
            if is_text && values_bytes(items) <= MANY_BYTES {
                schemes.push(Scheme::THOROUGH);
            }
            schemes
        }
        (None, Goal::Small) => vec![Scheme::LZ4, Scheme::SMALLEST],
    };
    // zstd is several times as slow to undo as lz4, which many values share. Values of any length take several times as long themselves.
    let raw = values_bytes(items) as u64;
    let shared = match items {
        LeafValues::Variable(_) => 3 * len as u64,
        _ => len as u64 / 3,
    };
    if target.goal == Goal::Balanced && raw > shared {
        schemes.truncate(1);
    }
    schemes
}
