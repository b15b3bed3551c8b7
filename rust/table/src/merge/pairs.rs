//! Matched pairs: a row of the source and a row of the table with the same key.

/// A row of the source, and one of the table that has its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    /// The number of the source's row, in its partition.
    pub source: u32,
    /// The address of the table's row.
    pub address: u64,
    /// The table row's id.
    pub id: u64,
}
