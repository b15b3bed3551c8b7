//! Rows of the source and rows of the table that match.

/// A row of the source, and one of the table that has its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    /// The number of the source's row, in its partition.
    pub source: u32,
    /// The address of the table's row.
    pub address: u64,
    /// Its id.
    pub id: u64,
}
