//! An orphan: a file that no kept manifest refers to.

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftoverKind {
    /// A data file, or a blob beside one.
    Data,
    /// A deletion file.
    Deletion,
    /// A transaction.
    Transaction,
    /// A file of an index.
    Index,
    /// A temporary file that was never renamed: of a writer that died, or that is still at work.
    Unfinished,
}

impl LeftoverKind {
    /// Its name, as Python shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Deletion => "deletion",
            Self::Transaction => "transaction",
            Self::Index => "index",
            Self::Unfinished => "unfinished",
        }
    }
}

/// An orphan: a file that no kept manifest refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// What it is.
    pub kind: LeftoverKind,
    /// Relative to the table's root.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Last change, in microseconds since 1970 (UTC); `None` where the store does not say.
    pub last_modified_us: Option<i64>,
    /// Whether a dropped manifest refers to it. If not, it may be a staged file of a commit under way.
    pub is_dropped: bool,
}
