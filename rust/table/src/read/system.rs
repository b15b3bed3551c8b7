//! System columns: a row's id, address and number, and the versions that created and last updated it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, FieldRef};

use super::rows::{bounds, count};
use crate::deletion::DeletionVector;
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::manifest::Manifest;
use crate::row_ids::{LineageParts, RowIdSequence, RowLineage, RowVersions};

/// A column that is computed from a row's position or from the fragment's lineage, not read from a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemColumn {
    /// `_rowid`. Without stable row ids it is the address.
    RowId,
    /// `_rowaddr`: fragment id << 32 | offset within the fragment.
    RowAddress,
    /// `_rowoffset`: the row's number among the live rows of the version, which `take` goes by.
    RowOffset,
    /// `_row_created_at_version`: the version that created the row; 1 if unknown.
    CreatedAtVersion,
    /// `_row_last_updated_at_version`: the version that last changed the row; 1 if unknown.
    LastUpdatedAtVersion,
}

impl SystemColumn {
    /// All of them.
    pub const ALL: [SystemColumn; 5] = [
        Self::RowId,
        Self::RowAddress,
        Self::RowOffset,
        Self::CreatedAtVersion,
        Self::LastUpdatedAtVersion,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::RowId => "_rowid",
            Self::RowAddress => "_rowaddr",
            Self::RowOffset => "_rowoffset",
            Self::CreatedAtVersion => "_row_created_at_version",
            Self::LastUpdatedAtVersion => "_row_last_updated_at_version",
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

    /// The parts of a fragment's lineage that some columns need.
    pub(super) fn lineage_of(columns: impl IntoIterator<Item = Self>, manifest: &Manifest) -> LineageParts {
        let mut parts = LineageParts::default();
        for column in columns {
            match column {
                Self::RowId => parts.ids = manifest.has_stable_row_ids(),
                Self::CreatedAtVersion | Self::LastUpdatedAtVersion => parts.versions = true,
                Self::RowAddress | Self::RowOffset => {}
            }
        }
        parts
    }
}

/// The positions and the lineage of one fragment's rows.
#[derive(Debug, Clone)]
pub(super) struct RowPlaces {
    pub(super) fragment_id: u64,
    /// Live rows of the version before this fragment; `None` unless `_rowoffset` is read.
    pub(super) rows_before: Option<u64>,
    pub(super) deletions: Option<Arc<DeletionVector>>,
    /// Read only as far as it is needed. Without stable ids, a row's id is its address.
    pub(super) lineage: RowLineage,
}

impl RowPlaces {
    /// A system column for sorted physical rows, null for deleted ones.
    pub(super) fn values(&self, column: SystemColumn, rows: &[Range<u64>]) -> ArrayRef {
        let base = match (column, &self.lineage.ids) {
            (SystemColumn::CreatedAtVersion, _) => return versions(&self.lineage.created, rows),
            (SystemColumn::LastUpdatedAtVersion, _) => return versions(&self.lineage.updated, rows),
            (SystemColumn::RowId, Some(ids)) => return self.ids(ids, rows),
            (SystemColumn::RowId | SystemColumn::RowAddress, _) => self.fragment_id << 32,
            (SystemColumn::RowOffset, _) => self.rows_before.unwrap_or(0),
        };
        let Some(deletions) = &self.deletions else {
            let offsets = rows.iter().flat_map(Range::clone);
            return Arc::new(UInt64Array::from_iter_values(offsets.map(|offset| base + offset)));
        };
        let numbered = column == SystemColumn::RowOffset;
        // Those that are deleted before a row, counted as the rows rise.
        let (mut before, mut upto) = (0, 0);
        let mut places = Vec::with_capacity(usize::try_from(count(rows)).unwrap_or(0));
        for range in rows.iter().filter(|range| !range.is_empty()) {
            let skipped = upto..range.start;
            if numbered && !skipped.is_empty() {
                before += deletions.rows().range_cardinality(bounds(&skipped));
            }
            let mut deleted = deletions.rows().range(bounds(range)).map(u64::from).peekable();
            for offset in range.clone() {
                let is_deleted = deleted.next_if_eq(&offset).is_some();
                before += u64::from(is_deleted && numbered);
                places.push((!is_deleted).then(|| base + offset - before));
            }
            upto = range.end;
        }
        Arc::new(UInt64Array::from(places))
    }

    fn ids(&self, ids: &RowIdSequence, rows: &[Range<u64>]) -> ArrayRef {
        let mut out = Vec::with_capacity(usize::try_from(count(rows)).unwrap_or(0));
        rows.iter().for_each(|range| ids.extend_into(range.clone(), &mut out));
        let live = self.deletions.as_ref().map(|deletions| {
            let offsets = rows.iter().flat_map(Range::clone);
            let live = |offset| u32::try_from(offset).is_ok_and(|offset| !deletions.contains(offset));
            NullBuffer::new(offsets.map(live).collect::<BooleanBuffer>())
        });
        Arc::new(UInt64Array::new(out.into(), live.filter(|live| live.null_count() > 0)))
    }
}

fn versions(versions: &RowVersions, rows: &[Range<u64>]) -> ArrayRef {
    let mut out = Vec::with_capacity(usize::try_from(count(rows)).unwrap_or(0));
    for (rows, version) in rows.iter().flat_map(|range| versions.runs(range.clone())) {
        let length = out.len().saturating_add(usize::try_from(rows).unwrap_or(0));
        out.resize(length, version);
    }
    Arc::new(UInt64Array::from(out))
}

/// The lineage of a fragment, as far as it is needed.
pub(super) async fn read_lineage(
    files: &super::TableFiles,
    fragment: &Fragment,
    physical_rows: u64,
    wanted: LineageParts,
) -> Result<RowLineage> {
    if wanted == LineageParts::default() {
        return Ok(RowLineage::default());
    }
    let lineage = RowLineage::read(files.store(), fragment, physical_rows, wanted).await?;
    if wanted.ids && lineage.ids.is_none() {
        let what = format!("fragment {}", fragment.id());
        let message = "expected its row ids, as the table has stable ones, found none";
        return Err(TableError::corrupt(what, message));
    }
    Ok(lineage)
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
