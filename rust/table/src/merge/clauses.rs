//! The clauses of a merge: what happens to matched and to unmatched rows.

use esker_expr::Predicate;

/// A condition on a row of the source and the row of the table that it matches.
#[derive(Debug, Clone)]
pub struct UpdateCondition {
    /// A predicate over two struct columns, `source` and `target`, which hold the columns below in their order.
    pub predicate: Predicate,
    /// The columns of the source that it reads.
    pub source_columns: Vec<String>,
    /// The columns of the table that it reads.
    pub target_columns: Vec<String>,
}

/// What happens to a row of the table that a row of the source matches.
#[derive(Debug, Clone, Default)]
pub enum WhenMatched {
    /// It stays.
    #[default]
    Keep,
    /// The source's row replaces it.
    Update,
    /// The source's row replaces it if the condition is true; otherwise it stays.
    UpdateIf(UpdateCondition),
    /// It goes.
    Delete,
    /// The merge fails.
    Fail,
}

/// What happens to a row of the table that no row of the source matches.
#[derive(Debug, Clone, Default)]
pub enum WhenNotMatchedBySource {
    /// It stays.
    #[default]
    Keep,
    /// It goes.
    Delete,
    /// It is deleted if the predicate is true for it.
    DeleteIf(Predicate),
}

/// What a merge does.
#[derive(Debug, Clone, Default)]
pub struct MergeClauses {
    /// For rows of the table that match.
    pub when_matched: WhenMatched,
    /// Whether rows of the source that match none of the table are inserted.
    pub insert: bool,
    /// For rows of the table that match no row of the source.
    pub when_not_matched_by_source: WhenNotMatchedBySource,
}

impl MergeClauses {
    /// Whether rows of the table may be updated.
    pub fn updates(&self) -> bool {
        matches!(self.when_matched, WhenMatched::Update | WhenMatched::UpdateIf(_))
    }
}
