//! Moved rows: the lineage that an update or a compaction carries over from the fragments that it reads.

use std::collections::HashMap;

use super::index::RowIdIndex;
use super::lineage::RowLineage;
use super::sequence::RowIdSequence;
use super::versions::RowVersions;
use crate::error::Result;
use crate::fragment::Fragment;
use crate::manifest::Manifest;

/// Looks up the versions that created the rows of a version, by id.
#[derive(Debug)]
pub struct MovedRows<'a> {
    base: &'a Manifest,
    index: RowIdIndex,
    created: HashMap<u32, RowVersions>,
}

impl<'a> MovedRows<'a> {
    /// The rows of `base`. Deletions do not matter, since all copies of a row have the same created version.
    pub fn of(base: &'a Manifest) -> Result<Self> {
        Self::from_fragments(base, |_| true)
    }

    /// The same for rows of some fragments only, told by their ids. The lineage of the others may lie anywhere.
    pub fn from_fragments(base: &'a Manifest, from: impl Fn(u64) -> bool) -> Result<Self> {
        Ok(Self {
            index: base.inline_row_id_index(from)?,
            base,
            created: HashMap::new(),
        })
    }

    /// The versions that created the rows `ids`; `unknown` for ids that no row has.
    pub fn created_versions(&mut self, ids: &RowIdSequence, unknown: u64) -> Result<RowVersions> {
        let mut out = RowVersions::default();
        let mut candidates = Vec::new();
        for id in ids.ids() {
            self.index.candidates(id, &mut candidates);
            let version = match candidates.first() {
                Some(row) => self.created_at(row.fragment, row.offset)?,
                None => None,
            };
            out.push(1, version.unwrap_or(unknown));
        }
        Ok(out)
    }

    fn created_at(&mut self, fragment: u32, offset: u32) -> Result<Option<u64>> {
        if let Some(versions) = self.created.get(&fragment) {
            return Ok(versions.get(u64::from(offset)));
        }
        let Some(found) = self.base.fragment_at(fragment as usize)? else {
            return Ok(None);
        };
        let versions = RowLineage::inline(&found)?.created;
        let version = versions.get(u64::from(offset));
        self.created.insert(fragment, versions);
        Ok(version)
    }
}

impl RowLineage {
    /// The lineage of the rows that are not deleted. `deleted` ascends.
    #[must_use]
    pub fn mask(&self, deleted: &[u32]) -> Self {
        let places = || deleted.iter().copied().map(u64::from);
        Self {
            ids: self.ids.as_ref().map(|ids| ids.mask(places())),
            created: self.created.mask(places()),
            updated: self.updated.mask(places()),
        }
    }

    /// The concatenated lineage of fragments, in their order.
    pub fn concat(parts: &[Self]) -> Self {
        let mut out = Self::default();
        let mut ids = Vec::new();
        for part in parts {
            ids.extend(part.ids.iter().flat_map(RowIdSequence::ids));
            out.created.extend(&part.created);
            out.updated.extend(&part.updated);
        }
        if parts.iter().any(|part| part.ids.is_some()) {
            out.ids = Some(RowIdSequence::from_ids(&ids));
        }
        out
    }

    /// The lineage of some of the rows, for example of one fragment that a rewrite makes.
    #[must_use]
    pub fn slice(&self, rows: std::ops::Range<u64>) -> Self {
        Self {
            ids: self.ids.as_ref().map(|ids| ids.slice(rows.clone())),
            created: self.created.slice(rows.clone()),
            updated: self.updated.slice(rows),
        }
    }

    /// A fragment with this lineage in place of its own.
    #[must_use]
    pub fn stamp(&self, fragment: Fragment) -> Fragment {
        let fragment = fragment.without_lineage();
        match &self.ids {
            Some(ids) => fragment
                .with_row_ids(ids)
                .with_updated_versions(&self.updated)
                .with_created_versions(&self.created),
            None => fragment,
        }
    }
}
