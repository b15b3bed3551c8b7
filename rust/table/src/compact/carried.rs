//! What rows keep when they move to another file: their ids, and the versions that created and last changed them.

use std::ops::Range;

use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::manifest::Manifest;
use crate::read::{live_rows, TableFiles};
use crate::row_ids::{
    LineageColumn, LineageField, LineageParts, RowIdSequence, RowLineage, RowVersions, Sequences, Spilling,
};

/// Ids and versions of rows in the order in which they are written.
#[derive(Debug, Default)]
pub(super) struct CarriedRows {
    ids: Vec<u64>,
    created: RowVersions,
    updated: RowVersions,
    /// What the table's config says about long sequences.
    spilling: Option<Spilling>,
}

impl CarriedRows {
    /// Those of the live rows of fragments; `None` in a table without stable row ids.
    pub async fn read(files: &TableFiles, manifest: &Manifest, fragments: &[Fragment]) -> Result<Option<Self>> {
        if !manifest.has_stable_row_ids() {
            return Ok(None);
        }
        let mut out = Self {
            spilling: Spilling::of(manifest.config())?,
            ..Self::default()
        };
        for fragment in fragments {
            let (rows, live) = live_rows(files, fragment).await?;
            let wanted = LineageParts {
                ids: true,
                versions: true,
            };
            let lineage = RowLineage::read(files.store(), fragment, rows, wanted).await?;
            let missing = || {
                let what = format!("fragment {}", fragment.id());
                TableError::corrupt(what, "expected its row ids, as the table has stable ones, found none")
            };
            let ids = lineage.ids.ok_or_else(missing)?;
            for range in live {
                ids.extend_into(range.clone(), &mut out.ids);
                extend(&mut out.created, &lineage.created, range.clone());
                extend(&mut out.updated, &lineage.updated, range);
            }
        }
        Ok(Some(out))
    }

    fn ids(&self, rows: Range<u64>) -> RowIdSequence {
        let place = |row: u64| usize::try_from(row).unwrap_or(usize::MAX).min(self.ids.len());
        let ids = self.ids.get(place(rows.start)..place(rows.end)).unwrap_or_default();
        RowIdSequence::from_ids(ids)
    }

    /// The sequences that a file of these rows of all holds as columns, as they are too long for the manifest.
    pub fn columns(&self, rows: Range<u64>) -> Vec<LineageColumn> {
        let Some(spilling) = self.spilling else {
            return Vec::new();
        };
        spilling.columns(Sequences {
            ids: &self.ids(rows.clone()),
            created: &self.created.slice(rows.clone()),
            updated: Some(&self.updated.slice(rows)),
        })
    }

    /// The fragment with the ids and versions of its rows, which are those from row `start` of all. Those that its file holds are not
    /// repeated.
    pub fn stamp(&self, fragment: Fragment, start: u64) -> Fragment {
        let end = start.saturating_add(fragment.physical_rows().unwrap_or(0));
        let fragment = fragment
            .with_row_ids(&self.ids(start..end))
            .with_created_versions(&self.created.slice(start..end))
            .with_updated_versions(&self.updated.slice(start..end));
        let held: Vec<i32> = fragment.files().iter().flat_map(|file| file.fields.clone()).collect();
        let spilled = LineageField::ALL.into_iter().filter(|field| held.contains(&field.id()));
        spilled.fold(fragment, Fragment::with_spilled)
    }
}

fn extend(out: &mut RowVersions, from: &RowVersions, rows: Range<u64>) {
    from.runs(rows).for_each(|(rows, version)| out.push(rows, version));
}
