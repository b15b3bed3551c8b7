//! The kinds of operation that the format knows.

/// The field of the first kind; the others follow in order.
const FIRST: u32 = 100;

/// The kinds of operation, by the number of their field in the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// New rows.
    Append,
    /// Rows gone.
    Delete,
    /// A new table, or new contents in place of all old ones.
    Overwrite,
    /// An index added, replaced or dropped.
    CreateIndex,
    /// The same rows in other files: compaction.
    Rewrite,
    /// New columns beside the old ones.
    Merge,
    /// The contents of an older version again.
    Restore,
    /// Fragment ids set aside.
    ReserveFragments,
    /// Rows changed.
    Update,
    /// Columns dropped or renamed.
    Project,
    /// Key-values changed.
    UpdateConfig,
    /// One column's file replaced.
    DataReplacement,
    /// The state of a write-ahead log.
    UpdateMemWalState,
    /// A table that borrows another one's files.
    Clone,
    /// New roots for files.
    UpdateBases,
    /// Values laid over single cells.
    DataOverlay,
    /// Several operations in one.
    Composite,
    /// An operation of a newer writer; 0 if there is none at all.
    Unknown(u32),
}

impl OperationKind {
    /// All kinds that have a name.
    pub const NAMED: [OperationKind; 17] = [
        Self::Append,
        Self::Delete,
        Self::Overwrite,
        Self::CreateIndex,
        Self::Rewrite,
        Self::Merge,
        Self::Restore,
        Self::ReserveFragments,
        Self::Update,
        Self::Project,
        Self::UpdateConfig,
        Self::DataReplacement,
        Self::UpdateMemWalState,
        Self::Clone,
        Self::UpdateBases,
        Self::DataOverlay,
        Self::Composite,
    ];

    /// The kind of the transaction's field `number`; `None` for fields that do not hold an operation.
    pub fn from_field(number: u32) -> Option<Self> {
        let index = number.checked_sub(FIRST)?;
        let named = usize::try_from(index)
            .ok()
            .and_then(|index| Self::NAMED.get(index).copied());
        Some(named.unwrap_or(Self::Unknown(number)))
    }

    /// The number of the transaction's field that holds it; 0 if there is none.
    pub fn field(self) -> u32 {
        if let Self::Unknown(number) = self {
            return number;
        }
        let position = Self::NAMED.iter().position(|kind| *kind == self).unwrap_or(0);
        u32::try_from(position).map_or(0, |position| position.saturating_add(FIRST))
    }

    /// The operation's name, as other libraries spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Append => "Append",
            Self::Delete => "Delete",
            Self::Overwrite => "Overwrite",
            Self::CreateIndex => "CreateIndex",
            Self::Rewrite => "Rewrite",
            Self::Merge => "Merge",
            Self::Restore => "Restore",
            Self::ReserveFragments => "ReserveFragments",
            Self::Update => "Update",
            Self::Project => "Project",
            Self::UpdateConfig => "UpdateConfig",
            Self::DataReplacement => "DataReplacement",
            Self::UpdateMemWalState => "UpdateMemWalState",
            Self::Clone => "Clone",
            Self::UpdateBases => "UpdateBases",
            Self::DataOverlay => "DataOverlay",
            Self::Composite => "CompositeOperation",
            Self::Unknown(_) => "unknown operation",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_kinds_follow_their_field_numbers() {
        assert_eq!(OperationKind::from_field(99), None);
        assert_eq!(OperationKind::from_field(100), Some(OperationKind::Append));
        assert_eq!(OperationKind::from_field(108), Some(OperationKind::Update));
        assert_eq!(OperationKind::from_field(111), Some(OperationKind::DataReplacement));
        assert_eq!(OperationKind::from_field(114), Some(OperationKind::UpdateBases));
        assert_eq!(OperationKind::from_field(115), Some(OperationKind::DataOverlay));
        assert_eq!(OperationKind::from_field(116), Some(OperationKind::Composite));
        assert_eq!(OperationKind::from_field(117), Some(OperationKind::Unknown(117)));
        for kind in OperationKind::NAMED.into_iter().chain([OperationKind::Unknown(117)]) {
            assert_eq!(OperationKind::from_field(kind.field()), Some(kind));
        }
    }
}
