//! Update: rows changed in place or moved, and possibly inserted.

use std::collections::BTreeMap;

use bytes::Bytes;
use esker_proto::lance::table::transaction as op;
use roaring::RoaringBitmap;

use super::message::{build, encoded_fragments, Parts};
use crate::error::{Result, TableError};
use crate::fragment::Fragment;

const UPDATED_FRAGMENTS: u32 = 2;
const NEW_FRAGMENTS: u32 = 3;

/// How an update changes rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UpdateMode {
    /// Changed rows move to new fragments.
    #[default]
    RewriteRows,
    /// Changed columns get new files in the same fragments.
    RewriteColumns,
}

/// Rows changed, and perhaps added.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Update {
    /// Fragments that lost all rows.
    pub removed_fragment_ids: Vec<u64>,
    /// Fragments of the table as they are now: other deletion files, or other data files.
    pub updated_fragments: Vec<Fragment>,
    /// Their ids are given out at commit.
    pub new_fragments: Vec<Fragment>,
    /// The ids of the fields whose values changed within the updated fragments.
    pub fields_modified: Vec<u32>,
    /// The ids of the fields whose values changed. With stable row ids, an index on other fields still covers the moved rows.
    pub fields_for_preserving_frag_bitmap: Vec<u32>,
    /// How rows were changed.
    pub update_mode: UpdateMode,
    /// A write-ahead log that the update absorbs; empty if there is none.
    pub mem_wal_to_merge: Bytes,
    /// A filter over the keys of inserted rows; empty if there is none.
    pub inserted_rows: Bytes,
    /// By fragment, the rows that changed in place, as roaring bitmaps.
    pub updated_fragment_offsets: BTreeMap<u64, Bytes>,
}

/// The rows of a fragment that changed in place.
pub(crate) fn changed_offsets(bitmap: &[u8]) -> Result<RoaringBitmap> {
    RoaringBitmap::deserialize_from(bitmap).map_err(|error| {
        let message = format!("expected the changed rows as a portable RoaringBitmap, found other bytes: {error}");
        TableError::invalid(message)
    })
}

impl Update {
    /// Checks what a caller gave.
    ///
    /// # Errors
    /// Changed rows that are no bitmap.
    pub fn check(&self) -> Result<()> {
        for (fragment, bitmap) in &self.updated_fragment_offsets {
            changed_offsets(bitmap)
                .map_err(|error| TableError::invalid(format!("updated_fragment_offsets[{fragment}]: {error}")))?;
        }
        Ok(())
    }

    pub(super) fn decode(mut parts: Parts) -> Result<Self> {
        let updated_fragments = parts.fragments(UPDATED_FRAGMENTS)?;
        let new_fragments = parts.fragments(NEW_FRAGMENTS)?;
        let rest: op::Update = parts.rest()?;
        Ok(Self {
            updated_fragments,
            new_fragments,
            update_mode: match rest.update_mode() {
                op::UpdateMode::RewriteRows => UpdateMode::RewriteRows,
                op::UpdateMode::RewriteColumns => UpdateMode::RewriteColumns,
            },
            removed_fragment_ids: rest.removed_fragment_ids,
            fields_modified: rest.fields_modified,
            fields_for_preserving_frag_bitmap: rest.fields_for_preserving_frag_bitmap,
            mem_wal_to_merge: rest.mem_wal_to_merge,
            inserted_rows: rest.inserted_rows,
            updated_fragment_offsets: rest.updated_fragment_offsets,
        })
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let mode = match self.update_mode {
            UpdateMode::RewriteRows => op::UpdateMode::RewriteRows,
            UpdateMode::RewriteColumns => op::UpdateMode::RewriteColumns,
        };
        let rest = op::Update {
            removed_fragment_ids: self.removed_fragment_ids.clone(),
            fields_modified: self.fields_modified.clone(),
            fields_for_preserving_frag_bitmap: self.fields_for_preserving_frag_bitmap.clone(),
            update_mode: mode.into(),
            mem_wal_to_merge: self.mem_wal_to_merge.clone(),
            inserted_rows: self.inserted_rows.clone(),
            updated_fragment_offsets: self.updated_fragment_offsets.clone(),
            ..Default::default()
        };
        build(
            &rest,
            [
                (UPDATED_FRAGMENTS, encoded_fragments(&self.updated_fragments)),
                (NEW_FRAGMENTS, encoded_fragments(&self.new_fragments)),
            ],
        )
    }
}
