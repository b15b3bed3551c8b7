//! What a way to write values costs: bytes to store and to read, and time to decode.

use esker_codec::general_work::Work;

use crate::v2_1::general::encode::Scheme;

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
    /// Memory for what comes out, and a copy into it. Units: values.
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
    /// Undoing zstd. Units: sequences.
    Zstd,
    /// Literals that zstd codes. Units: literals.
    ZstdLiterals,
    /// Tables of a zstd block. Units: tables.
    ZstdTables,
}

/// Picoseconds for each unit, and for each byte that comes out, of each step. `cargo bench -p esker-file` measures whole pages beside what
/// this table says of them.
pub(crate) const DECODE: [(Step, u64, u64); 12] = [
    (Step::Flat, 1500, 300),
    (Step::Packed, 1500, 500),
    (Step::Runs, 1000, 450),
    (Step::Split, 1500, 400),
    (Step::Variable, 3500, 200),
    (Step::Symbols, 5500, 450),
    (Step::LookUp, 500, 350),
    (Step::LookUpVariable, 4500, 200),
    (Step::Lz4, 2500, 60),
    (Step::Zstd, 5000, 60),
    (Step::ZstdLiterals, 900, 0),
    (Step::ZstdTables, 500_000, 0),
];

/// Picoseconds of a step.
pub(crate) fn picos(step: Step, units: usize, bytes: usize) -> u64 {
    let found = DECODE.iter().find(|(known, _, _)| *known == step);
    let (_, per_unit, per_byte) = found.copied().unwrap_or((step, 0, 0));
    (units as u64)
        .saturating_mul(per_unit)
        .saturating_add((bytes as u64).saturating_mul(per_byte))
}

/// Picoseconds of undoing general compression of `bytes` bytes.
pub(crate) fn general_picos(scheme: Scheme, work: Work, bytes: usize) -> u64 {
    let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    if scheme == Scheme::LZ4 {
        return picos(Step::Lz4, count(work.sequences), bytes);
    }
    picos(Step::Zstd, count(work.sequences), bytes)
        .saturating_add(picos(Step::ZstdLiterals, count(work.coded_literals), 0))
        .saturating_add(picos(Step::ZstdTables, count(work.tables), 0))
}

impl Price {
    /// The same with more bytes.
    pub(crate) fn plus(self, bytes: usize) -> Price {
        Price {
            bytes: self.bytes.saturating_add(bytes),
            ..self
        }
    }

    /// The same values in other bytes, which take more time.
    pub(crate) fn within(self, other: Price) -> Price {
        Price {
            bytes: other.bytes,
            picos: self.picos.saturating_add(other.picos),
        }
    }
}
