//! What a way to write values costs: bytes to store and to read, and time to decode.

use esker_codec::general_work::Work;

use super::candidate::values_bytes;
use crate::v2_1::general::encode::Scheme;
use crate::v2_1::values::LeafValues;

/// A price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Price {
    /// Bytes of the values; levels come on top of each.
    pub(crate) bytes: usize,
    /// Picoseconds that one core takes to decode all of them.
    pub(crate) picos: u64,
}

/// A step of decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A copy to where values belong. Units: values.
    Flat,
    /// Unpacking bits. Units: values.
    Packed,
    /// Repeating values. Units: runs.
    Runs,
    /// Joining split bytes. Units: values.
    Split,
    /// Copying bytes and their offsets. Units: values.
    Variable,
    /// Symbols to bytes. Units: values.
    Symbols,
    /// Looking up values of one width, besides the numbers. Units: values.
    LookUp,
    /// Looking up values of any length, besides the numbers. Units: values.
    LookUpVariable,
    /// Undoing lz4. Units: sequences.
    Lz4,
    /// The same. Units: bytes of the file.
    Lz4Stored,
    /// Undoing zstd. Units: sequences.
    Zstd,
    /// Literals that zstd codes. Units: literals.
    ZstdLiterals,
    /// Tables of a zstd block. Units: tables.
    ZstdTables,
    /// What each chunk takes that is compressed once more. Units: chunks.
    Chunk,
    /// What a read takes besides: memory for values of one width, and handing it over. Units: values.
    Output,
    /// The same for values of any length. Units: values.
    OutputVariable,
}

/// Picoseconds for each unit, and for each byte that comes out, of each step. `cargo bench -p esker-file` measured
/// whole pages, from which they come, and tells where they are off; what a read takes besides is what the fastest pages leave of its time.
pub(crate) const DECODE: [(Step, u64, u64); 16] = [
    (Step::Flat, 0, 80),
    (Step::Packed, 0, 75),
    (Step::Runs, 1000, 100),
    (Step::Split, 0, 40),
    (Step::Variable, 3500, 300),
    (Step::Symbols, 5500, 550),
    (Step::LookUp, 900, 80),
    (Step::LookUpVariable, 6000, 300),
    (Step::Lz4, 2500, 60),
    (Step::Lz4Stored, 150, 0),
    (Step::Zstd, 9000, 60),
    (Step::ZstdLiterals, 1200, 0),
    (Step::ZstdTables, 500_000, 0),
    (Step::Chunk, 300_000, 0),
    (Step::Output, 1500, 550),
    (Step::OutputVariable, 4000, 250),
];

/// Picoseconds of a step.
pub(crate) fn picos(step: Step, units: usize, bytes: usize) -> u64 {
    let found = DECODE.iter().find(|(known, _, _)| *known == step);
    let (_, per_unit, per_byte) = found.copied().unwrap_or((step, 0, 0));
    (units as u64)
        .saturating_mul(per_unit)
        .saturating_add((bytes as u64).saturating_mul(per_byte))
}

/// Picoseconds that a read of values takes besides decoding them, however they are written.
pub(crate) fn besides(values: &LeafValues) -> u64 {
    let step = match values {
        LeafValues::Variable(_) => Step::OutputVariable,
        _ => Step::Output,
    };
    picos(step, values.len(), values_bytes(values))
}

/// Picoseconds of undoing general compression of `bytes` bytes, which takes `stored`.
pub(crate) fn general_picos(scheme: Scheme, work: Work, bytes: usize, stored: usize) -> u64 {
    let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    if scheme == Scheme::LZ4 {
        return picos(Step::Lz4, count(work.sequences), bytes).saturating_add(picos(Step::Lz4Stored, stored, 0));
    }
    picos(Step::Zstd, count(work.sequences), bytes)
        .saturating_add(picos(Step::ZstdLiterals, count(work.coded_literals), 0))
        .saturating_add(picos(Step::ZstdTables, count(work.tables), 0))
}

impl Price {
    /// The same values in other bytes, which take more time.
    pub(crate) fn within(self, other: Price) -> Price {
        Price {
            bytes: other.bytes,
            picos: self.picos.saturating_add(other.picos),
        }
    }
}
