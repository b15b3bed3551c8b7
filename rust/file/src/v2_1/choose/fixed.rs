//! Ways to write values of one width in chunks.

use super::candidate::{choice_within, with_chunks, Candidate, SLOWEST};
use super::price::{picos, Price, Step};
use super::sample::{compressed_chunks, Growth};
use super::way::{fixed_chunks, Coding, Target, Way};
use crate::error::Result;
use crate::goal::Goal;
use crate::v2_1::general::encode::{Around, Scheme};
use crate::v2_1::hints::Compression;
use crate::v2_1::mini_block::encode::{fixed_chunk_len, ChunkEncoder};
use crate::v2_1::run_length::encode::MAX_RUN;
use crate::v2_1::statistics::statistics;
use crate::v2_1::values::FixedWidth;

/// Bytes of the file that a chunk aims at.
const CHUNK_BYTES: usize = 4096;

/// Values of a chunk that is packed.
const PACKED_VALUES: usize = 1024;

/// What a column asks of its values in chunks.
#[derive(Default)]
struct Asked {
    plain: bool,
    rle_threshold: Option<f64>,
    split_bytes: Option<bool>,
}

/// Ways to write values of one width in chunks, as the column asks for it.
pub(super) fn fixed_candidates(fixed: &FixedWidth, target: Target) -> Result<Vec<Candidate>> {
    let hints = target.hints();
    let asked = Asked {
        plain: hints.compression == Some(Compression::Plain),
        rle_threshold: hints.rle_threshold,
        split_bytes: hints.split_bytes,
    };
    chunk_candidates(fixed, &asked, target)
}

/// Ways to write the numbers of a dictionary's values: what is asked for is asked of the values, not of them.
pub(crate) fn index_candidates(indices: &FixedWidth, target: Target) -> Result<Vec<Candidate>> {
    chunk_candidates(indices, &Asked::default(), target)
}

/// How values in chunks are written.
pub(crate) struct Plan {
    pub(crate) coding: Coding,
    pub(crate) around: Option<Around>,
    pub(crate) price: Price,
}

/// How the numbers of a dictionary's values are written, where a read takes `besides` besides decoding them.
pub(crate) fn index_plan(indices: &FixedWidth, besides: u64, target: Target) -> Result<Plan> {
    let mut candidates = index_candidates(indices, target)?;
    let chosen = choice_within(&candidates, target, SLOWEST, besides).map(|index| candidates.swap_remove(index));
    Ok(match chosen {
        Some(Candidate {
            way: Way::Chunks(coding, around),
            price,
            ..
        }) => Plan { coding, around, price },
        _ => Plan {
            coding: Coding::Flat,
            around: None,
            price: flat_price(indices),
        },
    })
}

/// What goes around chunks that have one coding, if a hint asks for it, or the file is to be small, and it makes them smaller.
pub(crate) fn asked_scheme(chunks: &dyn ChunkEncoder, len: usize, target: Target) -> Result<Option<Around>> {
    let hints = target.hints();
    let scheme = match (hints.general(), target.goal) {
        (Some(asked), _) => asked,
        (None, Goal::Small) if hints.compression.is_none() => Scheme::SMALLEST,
        (None, _) => return Ok(None),
    };
    const PLAIN: usize = 1 << 20;
    let (around, price) = compressed_chunks(chunks, len, scheme, PLAIN, Growth::NONE)?;
    Ok((price.bytes < PLAIN).then_some(around))
}

fn flat_price(fixed: &FixedWidth) -> Price {
    let bytes = fixed.len.saturating_mul(fixed.bits).div_ceil(8);
    Price {
        bytes: with_chunks(bytes, fixed.len, fixed_chunk_len(fixed.bits, fixed.len)),
        picos: picos(Step::Flat, fixed.len, bytes),
    }
}

fn chunk_candidates(fixed: &FixedWidth, asked: &Asked, target: Target) -> Result<Vec<Candidate>> {
    let bytes = fixed.contiguous();
    let schemes = &target.schemes();
    let (len, width) = (fixed.len, fixed.bits / 8);
    let flat = flat_price(fixed);
    let mut out = vec![Candidate::chunks(Coding::Flat, None, flat)];
    if let Some(found) = statistics(fixed.bits, bytes.as_slice()) {
        let packed = Price {
            bytes: with_chunks(found.packed_bytes, len, 1024),
            picos: picos(Step::Packed, len, bytes.len()),
        };
        let runs = found.runs + len / MAX_RUN;
        let runs = Price {
            bytes: with_chunks(runs * (width + 1), len, 2048) + len.div_ceil(2048) * 8,
            picos: picos(Step::Runs, runs, bytes.len()),
        };
        let within = asked
            .rle_threshold
            .is_none_or(|threshold| (found.runs as f64) < len as f64 * threshold);
        let why = "no compression is asked for";
        out.push(Candidate::chunks(Coding::Packed, None, packed).barred_if(asked.plain, why));
        out.push(
            Candidate::chunks(Coding::Runs, None, runs)
                .barred_if(asked.plain, why)
                .barred_if(!within, "more runs than rle-threshold allows")
                .asked_if(asked.rle_threshold.is_some(), "rle-threshold asks for it"),
        );
    }
    if schemes.is_empty() || fixed.bits == 0 {
        return Ok(out);
    }
    // As much of the file as a chunk takes that is packed.
    let packed = out.get(1).map_or(0, |packed| {
        packed.price.bytes.saturating_mul(PACKED_VALUES) / len.max(1)
    });
    let best = out.iter().filter(|plain| plain.barred.is_none());
    let best = best.map(|plain| plain.price.bytes).min().unwrap_or(usize::MAX);
    let growth = Growth::new(packed.clamp(CHUNK_BYTES, 2 * CHUNK_BYTES), target.goal, best);
    let mut compressed = Vec::new();
    for plain in &out {
        let Way::Chunks(coding, None) = &plain.way else {
            continue;
        };
        compressed.extend(
            around(fixed, coding, plain.price, schemes, growth)?
                .into_iter()
                .map(|found| Candidate {
                    barred: plain.barred.clone(),
                    asked: plain.asked.clone(),
                    ..found
                }),
        );
    }
    if matches!(fixed.bits, 32 | 64) && asked.split_bytes != Some(false) {
        let split = Price {
            bytes: flat.bytes,
            picos: picos(Step::Split, len, bytes.len()),
        };
        let asked = asked.split_bytes == Some(true);
        let found = around(fixed, &Coding::Split, split, schemes, growth)?.into_iter();
        compressed.extend(found.map(|candidate| candidate.asked_if(asked, "bss asks for it")));
    }
    out.extend(compressed);
    Ok(out)
}

/// A coding within each of the schemes.
fn around(
    fixed: &FixedWidth,
    coding: &Coding,
    price: Price,
    schemes: &[Scheme],
    growth: Growth,
) -> Result<Vec<Candidate>> {
    let chunks = fixed_chunks(fixed, coding);
    // A packed chunk has 1,024 values at most, and runs are long already.
    let growth = match coding {
        Coding::Flat | Coding::Split if fixed.bits >= 8 => growth,
        _ => growth.fixed(),
    };
    let found = schemes.iter().map(|scheme| {
        let (around, compressed) = compressed_chunks(&*chunks, fixed.len, *scheme, price.bytes, growth)?;
        let coding = match coding {
            Coding::Packed => Coding::Packed,
            Coding::Runs => Coding::Runs,
            Coding::Split => Coding::Split,
            Coding::Flat | Coding::Variable | Coding::Symbols(_) => Coding::Flat,
        };
        Ok(Candidate::chunks(coding, Some(around), price.within(compressed)))
    });
    found.collect()
}
