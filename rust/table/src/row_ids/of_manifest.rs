//! The row-id index of a version, built once from the sequences of its fragments.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use esker_store::store::StoreRef;

use super::index::{RowIdIndex, RowIdIndexBuilder};
use super::lineage::FIRST_VERSION;
use super::sequence::RowIdSequence;
use super::stored::{Stored, StoredLineage};
use super::versions::RowVersions;
use crate::error::{Result, TableError};
use crate::flags::SPILLED_ROW_LINEAGE;
use crate::fragment::Fragment;
use crate::fragment_list::Edit;
use crate::manifest::Manifest;
use crate::raw::RawMessage;

const ID: u32 = 1;
const PHYSICAL_ROWS: u32 = 4;
const FILES: u32 = 2;
const ROW_IDS: [u32; 3] = [5, 6, 12];

/// The ids of one fragment, before they are decoded.
struct Listed {
    place: u32,
    rows: u64,
    stored: StoredLineage,
}

impl Listed {
    fn of(place: usize, fragment: &Bytes) -> Result<Self> {
        let keep = |number: u32| [ID, FILES, PHYSICAL_ROWS].contains(&number) || ROW_IDS.contains(&number);
        let raw = RawMessage::decode_fields(fragment, keep).map_err(|error| error.of("fragment"))?;
        let number = |number| raw.get(number).map_or(0, |field| field.varint());
        let id = number(ID);
        let place = u32::try_from(place)
            .map_err(|_| TableError::unsupported("a table of more than 2^32 fragments cannot be read by row id"))?;
        Ok(Self {
            place,
            rows: number(PHYSICAL_ROWS),
            stored: StoredLineage::of(&raw, id)?,
        })
    }

    fn add(&self, builder: &mut RowIdIndexBuilder, encoded: &Bytes) -> Result<()> {
        let what = self.stored.ids_name();
        let ids = RowIdSequence::decode(encoded, &what)?;
        if ids.len() != self.rows {
            let (rows, found) = (self.rows, ids.len());
            return Err(TableError::corrupt(
                what,
                format!("expected row ids for {rows} rows, found {found}"),
            ));
        }
        builder.push(self.place, &ids, &what)
    }

    fn missing(&self) -> TableError {
        let what = format!("fragment {}", self.stored.fragment_id);
        TableError::corrupt(
            what,
            "expected its row ids for the index, as the table has stable ones, found none",
        )
    }
}

/// How a version changed a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowChange {
    /// It created the row.
    Created,
    /// It was the last to change the row.
    Updated,
}

impl Manifest {
    fn listed(&self) -> impl Iterator<Item = Result<Listed>> + '_ {
        let fragments = self.fragments.messages().enumerate();
        fragments.map(|(place, fragment)| Listed::of(place, &fragment))
    }

    /// The index over the ids of all rows, built on the first call and kept with the manifest.
    pub async fn row_id_index(&self, store: &StoreRef) -> Result<Arc<RowIdIndex>> {
        let make = || async {
            let mut builder = RowIdIndexBuilder::default();
            for listed in self.listed() {
                let listed = listed.map_err(|error| error.in_file(self.path()))?;
                let ids = listed.stored.ids.as_ref().ok_or_else(|| listed.missing())?;
                let encoded = ids.load(store).await?;
                let added = listed.add(&mut builder, &encoded);
                added.map_err(|error| error.in_file(self.path()))?;
            }
            Ok::<_, TableError>(Arc::new(builder.build()))
        };
        self.row_id_index.get_or_try_init(make).await.cloned()
    }

    /// The fragments with rows that the versions `after + 1` to `upto` created, or changed last. Fragments whose lineage lies in other
    /// files are always included.
    pub fn fragments_of_versions(&self, after: u64, upto: u64, of: RowChange) -> Result<Vec<u64>> {
        let mut ids = Vec::new();
        for fragment in self.fragments() {
            let fragment = fragment?;
            let stored = fragment.lineage()?;
            let versions = match of {
                RowChange::Created => &stored.created,
                RowChange::Updated => &stored.updated,
            };
            let changed = match versions {
                Some(Stored::External { .. } | Stored::Spilled { .. }) => true,
                Some(Stored::Inline(encoded)) => {
                    let versions = RowVersions::decode(encoded, &stored.versions_name())?;
                    let mut runs = versions.runs(0..versions.len());
                    runs.any(|(_, version)| after < version && version <= upto)
                }
                None => after < FIRST_VERSION && FIRST_VERSION <= upto,
            };
            if changed {
                ids.push(fragment.id());
            }
        }
        Ok(ids)
    }

    /// This version with spilled lineage inline, for a change that needs that of these fragments.
    pub(crate) async fn with_lineage_inline(&self, store: &StoreRef, of: impl Fn(u64) -> bool) -> Result<Self> {
        let mut inline = HashMap::new();
        for fragment in self.fragments.iter() {
            let fragment = fragment?;
            if fragment.has_spilled_lineage() && of(fragment.id()) {
                inline.insert(fragment.id(), fragment.with_lineage_inline(store).await?);
            }
        }
        self.with_replaced(inline)
    }

    /// This version, made on top of `base` with its lineage inline, with unchanged lineage spilled as in `base`.
    pub(crate) fn with_lineage_spilled(&self, base: &Self, inline: &Self) -> Result<Self> {
        let mut before = HashMap::new();
        for (spilled, inline) in base.fragments.iter().zip(inline.fragments.iter()) {
            let spilled = spilled?;
            if spilled.has_spilled_lineage() {
                before.insert(spilled.id(), (spilled, inline?));
            }
        }
        let mut changed = HashMap::new();
        for fragment in self.fragments.iter() {
            let fragment = fragment?;
            if let Some((spilled, inline)) = before.get(&fragment.id()) {
                changed.insert(fragment.id(), fragment.with_lineage_spilled(spilled, inline));
            }
        }
        let next = self.with_replaced(changed)?;
        let is_spilled = next.fragments.has_spilled_lineage()?;
        Ok(next.with_flag(SPILLED_ROW_LINEAGE, is_spilled))
    }

    fn with_replaced(&self, mut changed: HashMap<u64, Fragment>) -> Result<Self> {
        let fragments = self.fragments.edited(|id, _| {
            let found = changed.remove(&id);
            Ok(found.map_or(Edit::Keep, Edit::Replace))
        })?;
        Ok(self.with_fragments(fragments))
    }

    /// The index over the sequences of some fragments, which the manifest holds inline, for a commit.
    pub(super) fn inline_row_id_index(&self, of: impl Fn(u64) -> bool) -> Result<RowIdIndex> {
        let mut builder = RowIdIndexBuilder::default();
        for listed in self.listed() {
            let listed = listed?;
            if !of(listed.stored.fragment_id) {
                continue;
            }
            let ids = listed.stored.ids.as_ref().ok_or_else(|| listed.missing())?;
            listed.add(&mut builder, ids.inline(&listed.stored.ids_name())?)?;
        }
        Ok(builder.build())
    }
}
