//! Allocates ids for new rows at commit, since the next free id is known only once the base version is.
//!
//! | operation | ids of new fragments | created at | updated at |
//! |---|---|---|---|
//! | append, overwrite | from the counter | this version | this version |
//! | update, upsert | those that the writer kept, then from the counter | as the kept row; this version for others | this version |
//! | rewrite (compaction) | all kept by the writer | kept | kept |
//! | new values in old fragments | as before | as before | this version, for the rows that changed |
//!
//! The counter never goes back: not by an overwrite, not by a restore.

use super::lineage::RowLineage;
use super::moved::MovedRows;
use super::sequence::RowIdSequence;
use super::versions::RowVersions;
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::manifest::Manifest;

/// Gives out row ids for one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowIdAllocator {
    next: u64,
    version: u64,
}

impl RowIdAllocator {
    /// The allocator for the commit after `base`; `None` for a table without stable row ids. A table has them from its
    /// creation or never: `enable` counts only where there is no base.
    pub fn new(base: Option<&Manifest>, enable: bool) -> Option<Self> {
        let (next, version) = match base {
            Some(base) => (base.has_stable_row_ids().then(|| base.next_row_id())?, base.version()),
            None => (enable.then_some(0)?, 0),
        };
        let version = version.saturating_add(1);
        Some(Self { next, version })
    }

    /// The first id that is still free.
    pub fn next_row_id(&self) -> u64 {
        self.next
    }

    /// Makes sure that no id below `next` is given out again, for example when an older version is restored.
    pub fn skip_to(&mut self, next: u64) {
        self.next = self.next.max(next);
    }

    /// Allocates ids for the rows of a fragment that have none yet: those after the rows whose ids its writer kept.
    fn assign(&mut self, fragment: &Fragment, kept: &RowIdSequence) -> Result<RowIdSequence> {
        let rows = rows_of(fragment)?;
        let missing = rows.checked_sub(kept.len()).ok_or_else(|| {
            let found = kept.len();
            TableError::invalid(format!(
                "expected at most {rows} row ids for a new fragment, found {found}"
            ))
        })?;
        let end = self.next.checked_add(missing);
        let end = end.ok_or_else(|| TableError::unsupported("the table has used up all 2^64 row ids"))?;
        let fresh = self.next..end;
        self.next = end;
        if kept.is_empty() {
            return Ok(RowIdSequence::from_range(fresh));
        }
        if missing == 0 {
            return Ok(kept.clone());
        }
        let mut ids = kept.ids();
        ids.extend(fresh);
        Ok(RowIdSequence::from_ids(&ids))
    }

    /// Stamps the new rows of an append or an overwrite.
    pub fn stamp_new(&mut self, fragments: &[Fragment]) -> Result<Vec<Fragment>> {
        let stamp = |fragment: &Fragment| {
            let ids = self.assign(fragment, &RowIdSequence::kept_by(fragment)?)?;
            let versions = RowVersions::uniform(ids.len(), self.version);
            let stamped = fragment.clone().without_lineage().with_row_ids(&ids);
            Ok(stamped
                .with_updated_versions(&versions)
                .with_created_versions(&versions))
        };
        fragments.iter().map(stamp).collect()
    }

    /// Stamps the rows that an update wrote: those with kept ids first, and new rows after them.
    pub fn stamp_updated(&mut self, base: &Manifest, fragments: &[Fragment]) -> Result<Vec<Fragment>> {
        let mut moved = None;
        let mut out = Vec::with_capacity(fragments.len());
        for fragment in fragments {
            if fragment.has_moved_lineage()? {
                // The writer knew the versions that created the rows, which no commit changes.
                let updated = RowVersions::uniform(rows_of(fragment)?, self.version);
                out.push(fragment.clone().with_updated_versions(&updated));
                continue;
            }
            let kept = RowIdSequence::kept_by(fragment)?;
            let ids = self.assign(fragment, &kept)?;
            let mut created = RowVersions::default();
            if !kept.is_empty() {
                let moved = match &mut moved {
                    Some(moved) => moved,
                    empty => empty.insert(MovedRows::of(base)?),
                };
                created = moved.created_versions(&kept, self.version)?;
            }
            created.push(ids.len() - created.len(), self.version);
            let updated = RowVersions::uniform(ids.len(), self.version);
            let stamped = fragment.clone().without_lineage().with_row_ids(&ids);
            out.push(stamped.with_updated_versions(&updated).with_created_versions(&created));
        }
        Ok(out)
    }

    /// Stamps a fragment of which all rows changed, or those at the ascending `offsets`.
    pub fn stamp_changed(&self, fragment: &Fragment, offsets: Option<&[u32]>) -> Result<Fragment> {
        let versions = match offsets {
            Some(offsets) => RowLineage::inline(fragment)?
                .updated
                .with_version(offsets.iter().copied().map(u64::from), self.version),
            None => RowVersions::uniform(rows_of(fragment)?, self.version),
        };
        Ok(fragment.clone().with_updated_versions(&versions))
    }

    /// Checks a rewritten fragment: its writer must have kept the rows' ids and versions.
    pub fn check_moved(&self, fragment: &Fragment) -> Result<()> {
        if !fragment.has_spilled_lineage() && RowLineage::inline(fragment)?.ids.is_none() {
            return Err(TableError::invalid(
                "expected the row ids of a rewritten fragment, found none; the table has stable row ids, which a rewrite keeps",
            ));
        }
        Ok(())
    }
}

fn rows_of(fragment: &Fragment) -> Result<u64> {
    let rows = fragment.physical_rows();
    rows.ok_or_else(|| TableError::invalid("expected a new fragment to say how many rows it has, found none"))
}

impl RowIdSequence {
    /// The ids that the writer of a new fragment kept for its first rows.
    pub(super) fn kept_by(fragment: &Fragment) -> Result<Self> {
        let stored = fragment.lineage()?;
        match &stored.ids {
            Some(ids) => Self::decode(ids.inline(&stored.ids_name())?, &stored.ids_name()),
            None => Ok(Self::default()),
        }
    }
}
