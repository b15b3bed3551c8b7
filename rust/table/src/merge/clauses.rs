//! What a merge does with rows that match and with rows that do not.

use esker_expr::Predicate;

/// A condition on a row of the source and the row of the table that it matches.
#[derive(Debug, Clone)]
pub struct UpdateCondition {
    /// Over two struct columns, `source` and `target`, which hold the columns below in their order.
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
    /// The source's row takes its place.
    Update,
    /// The source's row takes its place where the condition is true; elsewhere it stays.
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
    /// It goes if this is true of it.
    DeleteIf(Predicate),
}

/// What a merge does.
#[derive(Debug, Clone, Default)]
pub struct MergeClauses {
    /// With rows of the table that match.
    pub when_matched: WhenMatched,
    /// Whether rows of the source that match none of the table are inserted.
    pub insert: bool,
    /// With rows of the table that match none of the source.
    pub when_not_matched_by_source: WhenNotMatchedBySource,
}

impl MergeClauses {
    /// Whether rows of the table may be written anew.
    pub fn updates(&self) -> bool {
        matches!(self.when_matched, WhenMatched::Update | WhenMatched::UpdateIf(_))
    }
}
