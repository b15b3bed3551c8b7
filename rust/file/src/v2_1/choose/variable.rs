//! Ways to write values of any length.

use std::sync::Arc;

use super::candidate::{with_chunks, Candidate};
use super::price::{picos, Price, Step};
use super::sample::{compressed_chunks, Growth, Sample};
use super::way::{Coding, Target, Way};
use crate::error::Result;
use crate::goal::Goal;
use crate::v2_1::fsst::encode::{self as fsst, CodedChunks, Trained};
use crate::v2_1::general::encode::Scheme;
use crate::v2_1::hints::Compression;
use crate::v2_1::levels::serialize::Levels;
use crate::v2_1::values::VariableWidth;
use crate::v2_1::variable::encode::VariableChunks;

/// From this size in bytes on, values may be worth compressing one by one.
const HUGE_VALUE: usize = 32 * 1024;

/// Bytes of the file that a chunk aims at.
const CHUNK_BYTES: usize = 4096;

/// The best compression ratio of FSST that is assumed for values and offsets.
const SYMBOLS_GAIN: usize = 4;

/// Bytes of values that are coded to learn what general compression makes of them.
const TRIED_BYTES: usize = 192 * 1024;

fn offset_bytes(variable: &VariableWidth) -> usize {
    variable.len().saturating_mul(variable.offset_bits() / 8)
}

/// No symbols make values so small.
pub(super) fn symbols_floor(variable: &VariableWidth) -> usize {
    (variable.bytes.len() + offset_bytes(variable)) / SYMBOLS_GAIN
}

/// The ways, given what the best dictionary takes.
pub(super) fn variable_candidates(
    levels: &Levels,
    variable: &VariableWidth,
    dictionary: usize,
    target: Target,
) -> Result<Vec<Candidate>> {
    let (trained, forced) = symbols(variable, dictionary, target);
    let average = variable.bytes.len() / variable.len().max(1);
    if target.zips(average) {
        zip_candidates(levels, variable, trained, forced, target)
    } else {
        chunk_candidates(variable, trained, forced, dictionary, target)
    }
}

/// The ways to write values by themselves, as the fields of packed rows are.
pub(crate) fn single_candidates(levels: &Levels, variable: &VariableWidth, target: Target) -> Result<Vec<Candidate>> {
    let (trained, forced) = symbols(variable, usize::MAX, target);
    // Without bytes there are no symbols, whatever is asked for.
    let forced = forced && trained.is_some();
    zip_candidates(levels, variable, trained, forced, target)
}

/// Symbols for the values, where they may be worth it, and whether they are asked for.
fn symbols(variable: &VariableWidth, dictionary: usize, target: Target) -> (Option<Trained>, bool) {
    let hints = target.hints();
    let forced = hints.compression == Some(Compression::Fsst);
    let trained = match hints.compression {
        Some(Compression::Plain) => None,
        _ if dictionary < symbols_floor(variable) => None,
        // Texts that large are compressed by themselves, and what is no text has no symbols.
        None if variable.bytes.len() / variable.len().max(1) > HUGE_VALUE => None,
        _ => fsst::train(variable, forced),
    };
    (trained, forced)
}

fn plain_picos(variable: &VariableWidth) -> u64 {
    picos(Step::Variable, variable.len(), variable.bytes.len())
}

fn symbols_price(variable: &VariableWidth, trained: &Trained, rest: usize) -> Price {
    let coded = trained.coded_size(variable.bytes.len());
    Price {
        bytes: coded.saturating_add(rest).saturating_add(fsst::TABLE_BYTES),
        picos: picos(Step::Symbols, variable.len(), variable.bytes.len()),
    }
}

fn chunk_candidates(
    variable: &VariableWidth,
    trained: Option<Trained>,
    forced: bool,
    dictionary: usize,
    target: Target,
) -> Result<Vec<Candidate>> {
    let len = variable.len();
    let average = variable.bytes.len() / len.max(1);
    let rest = with_chunks(offset_bytes(variable), len, 4096 / (average + 4).max(1));
    let price = Price {
        bytes: variable.bytes.len() + rest,
        picos: plain_picos(variable),
    };
    let why = "compression asks for symbols";
    let mut out = vec![Candidate::chunks(Coding::Variable, None, price).barred_if(forced, why)];
    let schemes = target.schemes();
    // Compression that has to make a tenth of the values is not tried beside a dictionary that does.
    let tried = dictionary > price.bytes / 10 && !schemes.is_empty();
    let growth = Growth::new(CHUNK_BYTES, target.goal, price.bytes);
    if tried {
        let some = variable.some(TRIED_BYTES);
        let chunks = VariableChunks { values: &some };
        for scheme in &schemes {
            let (around, compressed) = compressed_chunks(&chunks, some.len(), *scheme, price.bytes, growth)?;
            out.push(Candidate::chunks(
                Coding::Variable,
                Some(around),
                price.within(compressed),
            ));
        }
    }
    if let Some(trained) = trained.map(Arc::new) {
        let price = symbols_price(variable, &trained, rest);
        out.push(Candidate::chunks(Coding::Symbols(trained.clone()), None, price));
        if tried {
            let coded = trained.encode(&variable.some(TRIED_BYTES));
            let (chunks, len) = (CodedChunks { coded: &coded }, coded.values.len());
            for scheme in &schemes {
                let (around, compressed) = compressed_chunks(&chunks, len, *scheme, price.bytes, growth)?;
                let coding = Coding::Symbols(trained.clone());
                out.push(Candidate::chunks(coding, Some(around), price.within(compressed)));
            }
        }
    }
    Ok(out)
}

fn zip_candidates(
    levels: &Levels,
    variable: &VariableWidth,
    trained: Option<Trained>,
    forced: bool,
    target: Target,
) -> Result<Vec<Candidate>> {
    let hints = target.hints();
    let offsets = offset_bytes(variable);
    let price = Price {
        bytes: variable.bytes.len() + offsets,
        picos: plain_picos(variable),
    };
    let plain = Candidate::new("full zip", Way::Zip, price);
    let mut out = vec![plain.barred_if(forced, "compression asks for symbols")];
    if let Some(trained) = trained {
        let price = symbols_price(variable, &trained, offsets);
        out.push(Candidate::new(
            "full zip of symbols",
            Way::ZipSymbols(Box::new(trained)),
            price,
        ));
    }
    let asked = hints.general();
    let longest = variable.iter().map(<[u8]>::len).max().unwrap_or(0);
    let worth = match target.goal {
        Goal::Fast => false,
        Goal::Balanced => longest > HUGE_VALUE,
        Goal::Small => true,
    };
    if asked.is_some() || (worth && hints.compression.is_none()) {
        let smallest = if target.goal == Goal::Small {
            Scheme::SMALLEST
        } else {
            Scheme::ZSTD
        };
        let scheme = asked.unwrap_or(smallest);
        let mut compressed = sample_of_values(variable).compressed(scheme, variable.bytes.len())?;
        compressed.bytes = compressed.bytes.saturating_add(offsets);
        let has_nulls = levels.num_valid < levels.num_visible;
        let price = price.within(compressed);
        out.push(
            Candidate::new("full zip of compressed values", Way::ZipCompressed(scheme), price)
                .barred_if(
                    has_nulls && !scheme.reads_nulls(),
                    "pylance reads no nulls among such values",
                )
                .asked_if(asked.is_some(), "compression asks for it"),
        );
    }
    Ok(out)
}

/// Some of the values, each by itself.
fn sample_of_values(variable: &VariableWidth) -> Sample {
    const TRIED: usize = 4;
    let mut sample = Sample::default();
    // Those in which every so many bytes lie: a few long values may have nearly all of them.
    let (start, total) = (variable.offsets.first().copied().unwrap_or(0), variable.bytes.len());
    let mut indices = (0..TRIED)
        .map(|part| {
            let place = start.saturating_add(total / TRIED * part + total / TRIED / 2);
            variable
                .offsets
                .partition_point(|offset| *offset <= place)
                .saturating_sub(1)
        })
        .collect::<Vec<_>>();
    indices.dedup();
    for index in indices.into_iter().filter(|index| *index < variable.len()) {
        // The first part of a value tells enough.
        let value = variable.get(index);
        sample.add(value.get(..value.len().min(4 * HUGE_VALUE)).unwrap_or(value));
    }
    sample
}
