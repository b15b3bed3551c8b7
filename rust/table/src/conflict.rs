//! Conflicts: the conflict matrix of the format, which says whether a change is still valid after another commit.
//!
//! Rows are the operation being committed, columns an operation that was committed since its read version. A writer checks its change
//! against every commit in between, in order. The verdicts are those of pylance 14; where releases differ, the stricter one holds.

mod columns;
mod overlap;

use std::fmt;

use crate::operation::OperationKind as Kind;
use crate::transaction::Transaction;

pub use columns::HeldColumns;

/// The effect of a commit in between on ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// No conflict: apply ours to the new latest version.
    Compatible,
    /// A retryable conflict, as ours was computed from outdated rows: compute it again from the latest version.
    Retry,
    /// A conflict for good: computing it again would not help, or would do something else than requested.
    Incompatible,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compatible => "compatible",
            Self::Retry => "retry",
            Self::Incompatible => "incompatible",
        })
    }
}

/// One cell of the matrix: a verdict, or a question about the two transactions that decides between two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// Never a conflict.
    Ok,
    /// Always computed again.
    Retry,
    /// Always refused.
    Never,
    /// Computed again if both touch a fragment.
    Fragments,
    /// Computed again if both touch a fragment, or both inserted rows under a key.
    FragmentsOrKeys,
    /// Computed again if both may have inserted rows under the declared primary key.
    Keys,
    /// Computed again if both name an index.
    Indices,
    /// Computed again if the index covers a column that the other replaces.
    IndexedColumns,
    /// Computed again, unless the one that changes the schema says that no column became required and replaced no column that an Append
    /// holds.
    Required,
    /// Refused if both change a key.
    Config,
    /// Refused if both add a base path of one id, name or path.
    Bases,
}

use Cell::{Bases, Config, Fragments, FragmentsOrKeys, IndexedColumns, Indices, Keys, Never, Ok, Required, Retry};

/// The columns of the matrix.
const COLUMNS: [Kind; 11] = [
    Kind::Append,
    Kind::Delete,
    Kind::Overwrite,
    Kind::CreateIndex,
    Kind::Rewrite,
    Kind::Merge,
    Kind::Restore,
    Kind::Update,
    Kind::Project,
    Kind::UpdateConfig,
    Kind::DataReplacement,
];

/// The matrix of the operations that change contents.
#[rustfmt::skip]
const MATRIX: [(Kind, [Cell; 11]); 11] = [
    // committing \ done      Append    Delete     Overwrite CreateIndex     Rewrite    Merge     Restore Update           Project   UpdateConfig DataReplacement
    (Kind::Append,          [ Ok,       Ok,        Never,    Ok,             Ok,        Required, Never,  Ok,              Required, Ok,          Ok             ]),
    (Kind::Delete,          [ Ok,       Fragments, Never,    Ok,             Fragments, Retry,    Never,  Fragments,       Ok,       Ok,          Fragments      ]),
    (Kind::Overwrite,       [ Ok,       Ok,        Retry,    Ok,             Ok,        Ok,       Ok,     Ok,              Ok,       Ok,          Ok             ]),
    (Kind::CreateIndex,     [ Ok,       Ok,        Never,    Indices,        Retry,     Ok,       Never,  Ok,              Ok,       Ok,          IndexedColumns ]),
    (Kind::Rewrite,         [ Ok,       Fragments, Never,    Retry,          Fragments, Retry,    Never,  Fragments,       Ok,       Ok,          Fragments      ]),
    (Kind::Merge,           [ Retry,    Retry,     Never,    Ok,             Retry,     Retry,    Never,  Retry,           Never,    Ok,          Retry          ]),
    (Kind::Restore,         [ Ok,       Ok,        Ok,       Ok,             Ok,        Ok,       Ok,     Ok,              Ok,       Ok,          Ok             ]),
    (Kind::Update,          [ Keys,     Fragments, Never,    Ok,             Fragments, Retry,    Never,  FragmentsOrKeys, Required, Ok,          Fragments      ]),
    (Kind::Project,         [ Required, Ok,        Never,    Ok,             Ok,        Retry,    Never,  Required,        Retry,    Ok,          Required       ]),
    (Kind::UpdateConfig,    [ Ok,       Ok,        Ok,       Ok,             Ok,        Ok,       Ok,     Ok,              Ok,       Config,      Ok             ]),
    (Kind::DataReplacement, [ Ok,       Ok,        Never,    IndexedColumns, Fragments, Retry,    Never,  Fragments,       Required, Ok,          Fragments      ]),
];

/// The cell of two kinds, those outside the matrix included.
fn cell(ours: Kind, theirs: Kind) -> Cell {
    match (ours, theirs) {
        // An operation of a newer writer is unknown: only a retry from the latest version is safe.
        (Kind::Unknown(_) | Kind::DataOverlay | Kind::Composite, _) => Retry,
        (_, Kind::Unknown(_) | Kind::DataOverlay | Kind::Composite) => Retry,
        // A clone makes another table.
        (Kind::Clone, _) | (_, Kind::Clone) => Ok,
        (Kind::UpdateBases, Kind::UpdateBases) => Bases,
        (Kind::UpdateBases, _) | (_, Kind::UpdateBases) => Ok,
        (Kind::ReserveFragments, Kind::Overwrite | Kind::Restore) => Never,
        (Kind::ReserveFragments, _) | (_, Kind::ReserveFragments) => Ok,
        (Kind::Rewrite | Kind::UpdateConfig, Kind::UpdateMemWalState) => Ok,
        (Kind::UpdateMemWalState, _) | (_, Kind::UpdateMemWalState) => Never,
        _ => {
            let row = MATRIX.iter().find(|(kind, _)| *kind == ours).map(|(_, row)| row);
            let column = COLUMNS.iter().position(|kind| *kind == theirs);
            row.zip(column)
                .and_then(|(row, column)| row.get(column))
                .copied()
                .unwrap_or(Retry)
        }
    }
}

/// The verdict on `ours` after `theirs`, which was committed since the read version of `ours`.
/// Where a corrupt transaction cannot answer a cell's question, the transactions overlap.
pub fn check(ours: &Transaction, theirs: &Transaction) -> Verdict {
    let retry_if = |conflict: bool| if conflict { Verdict::Retry } else { Verdict::Compatible };
    let never_if = |conflict: bool| {
        if conflict {
            Verdict::Incompatible
        } else {
            Verdict::Compatible
        }
    };
    match cell(ours.kind(), theirs.kind()) {
        Ok => Verdict::Compatible,
        Retry => Verdict::Retry,
        Never => Verdict::Incompatible,
        Fragments => retry_if(overlap::fragments(ours, theirs)),
        FragmentsOrKeys => retry_if(overlap::fragments(ours, theirs) || overlap::inserted_keys(ours, theirs)),
        Keys => retry_if(overlap::inserted_keys(ours, theirs)),
        Indices => retry_if(overlap::indices(ours, theirs)),
        IndexedColumns => retry_if(overlap::indexed_columns(ours, theirs)),
        Required => retry_if(
            overlap::may_require_columns(ours)
                || overlap::may_require_columns(theirs)
                || overlap::replaced_columns(ours, theirs),
        ),
        Config => never_if(overlap::config_keys(ours, theirs)),
        Bases => never_if(overlap::bases(ours, theirs)),
    }
}

/// Whether both may have inserted a row with the same key: then ours must be computed again, whatever else they touch.
pub fn may_insert_same_keys(ours: &Transaction, theirs: &Transaction) -> bool {
    overlap::inserted_keys(ours, theirs)
}

#[cfg(test)]
mod tests;
