//! The columns that no file holds: a row's id, its address and its number.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt64Array};
use arrow_schema::{DataType, Field, FieldRef};

use crate::deletion::DeletionVector;
use crate::error::{Result, TableError};
use crate::flags;
use crate::manifest::Manifest;

/// A column that is made from where a row lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemColumn {
    /// `_rowid`. Without stable row ids it is the address.
    RowId,
    /// `_rowaddr`: fragment id << 32 | offset within the fragment.
    RowAddress,
    /// `_rowoffset`: the row's number among the live rows of the version, which `take` goes by.
    RowOffset,
}

impl SystemColumn {
    /// All of them.
    pub const ALL: [SystemColumn; 3] = [Self::RowId, Self::RowAddress, Self::RowOffset];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::RowId => "_rowid",
            Self::RowAddress => "_rowaddr",
            Self::RowOffset => "_rowoffset",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }

    /// Its field.
    pub fn field(self) -> FieldRef {
        Arc::new(Field::new(self.name(), DataType::UInt64, true))
    }

    /// Refuses what the table does not let us know.
    pub(super) fn check(self, manifest: &Manifest) -> Result<()> {
        if self == Self::RowId && manifest.reader_feature_flags() & flags::STABLE_ROW_IDS != 0 {
            return Err(TableError::unsupported(
                "row ids of a table with stable row ids cannot be read yet; leave out _rowid",
            ));
        }
        Ok(())
    }
}

/// Where the rows of one fragment lie.
#[derive(Debug, Clone)]
pub(super) struct RowPlaces {
    pub(super) fragment_id: u64,
    /// Live rows of the version before this fragment; known only where a row's number is asked for.
    pub(super) rows_before: Option<u64>,
    pub(super) deletions: Option<DeletionVector>,
}

impl RowPlaces {
    /// A system column for sorted physical rows. Deleted rows have no place: theirs is null.
    pub(super) fn values(&self, column: SystemColumn, rows: &[Range<u64>]) -> ArrayRef {
        let offsets = rows.iter().flat_map(Range::clone);
        let base = match column {
            SystemColumn::RowId | SystemColumn::RowAddress => self.fragment_id << 32,
            SystemColumn::RowOffset => self.rows_before.unwrap_or(0),
        };
        let Some(deletions) = &self.deletions else {
            return Arc::new(UInt64Array::from_iter_values(offsets.map(|offset| base + offset)));
        };
        let numbered = column == SystemColumn::RowOffset;
        let place = |offset: u64| {
            let local = u32::try_from(offset).ok()?;
            if deletions.rows().contains(local) {
                return None;
            }
            let before = if numbered { deletions.rows().rank(local) } else { 0 };
            Some(base + offset - before)
        };
        Arc::new(offsets.map(place).collect::<UInt64Array>())
    }
}

/// Live rows before each fragment of a version, by fragment id.
pub(super) fn rows_before(manifest: &Manifest) -> Result<BTreeMap<u64, u64>> {
    let mut before = BTreeMap::new();
    let mut sum = 0_u64;
    for fragment in manifest.fragments() {
        let fragment = fragment?;
        before.insert(fragment.id(), sum);
        let rows = fragment.num_rows().ok_or_else(|| {
            TableError::unsupported(
                "_rowoffset needs the row counts of all fragments, and this table's old writer did not note them",
            )
        })?;
        sum = sum.saturating_add(rows);
    }
    Ok(before)
}
