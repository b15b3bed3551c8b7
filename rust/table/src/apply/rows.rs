//! Append, Delete, Update: rows are added, deleted and changed.

use std::collections::HashSet;

use bytes::Bytes;

use super::draft::Draft;
use super::field_ids::highest;
use super::fragments::{
    by_id, check_files, check_first_columns, check_new_fragments, check_present, field_ids, known_ids, push_fragments,
    with_row_ids, without_dropped_columns, without_row_ids,
};
use super::indices;
use super::repair::storage_version;
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::fragment_list::Edit;
use crate::manifest::Manifest;
use crate::operation::{changed_offsets, Update};
use crate::row_ids::is_lineage_field;

pub(super) fn append(base: &Manifest, new: Vec<Fragment>, read_version: u64) -> Result<Draft> {
    let mut draft = Draft::of(base)?;
    let new = without_dropped_columns(new, base, read_version);
    let new = with_row_ids(draft.row_ids.as_mut(), &new)?;
    let known = known_ids(&new, base, read_version);
    draft.mixed_files |= check_new_fragments(&new, storage_version(base)?, &known, base.base_paths())?;
    draft.max_fragment_id = push_fragments(&mut draft.fragments, &new, draft.max_fragment_id)?;
    Ok(draft)
}

/// Takes only the deletion files from the transaction's fragments: their other fields may have changed since they were read.
pub(super) fn delete(base: &Manifest, updated: Vec<Fragment>, deleted: &[u64]) -> Result<Draft> {
    let deleted: HashSet<u64> = deleted.iter().copied().collect();
    check_present(deleted.iter().copied(), base)?;
    let mut updated = by_id(updated, base)?;
    let mut draft = Draft::of(base)?;
    let mut gone = -1;
    draft.fragments = base.fragments.edited(|id, before| {
        if deleted.contains(&id) {
            gone = highest(&Fragment::decode(before)?).max(gone);
            return Ok(Edit::Remove);
        }
        let Some(updated) = updated.remove(&id) else {
            return Ok(Edit::Keep);
        };
        let file = updated.deletion_file().cloned();
        Ok(Edit::Replace(Fragment::decode(before)?.with_deletion_file(file)))
    })?;
    draft.gone_field_id = gone;
    Ok(draft)
}

pub(super) fn update(base: &Manifest, update: Update, read_version: u64) -> Result<Draft> {
    if !update.mem_wal_to_merge.is_empty() {
        return Err(TableError::unsupported(
            "an Update that absorbs a write-ahead log is not supported",
        ));
    }
    let version = storage_version(base)?;
    let mut draft = Draft::of(base)?;
    let new = without_dropped_columns(update.new_fragments, base, read_version);
    let new = match &mut draft.row_ids {
        Some(row_ids) => row_ids.stamp_updated(base, &new)?,
        None => without_row_ids(&new)?,
    };
    let known = known_ids(&new, base, read_version);
    draft.mixed_files |= check_new_fragments(&new, version, &known, base.base_paths())?;
    for fragment in &update.updated_fragments {
        draft.mixed_files |= check_files(
            fragment,
            &format!("fragment {}", fragment.id()),
            version,
            base.base_paths(),
        )?;
    }
    let removed: HashSet<u64> = update.removed_fragment_ids.iter().copied().collect();
    check_present(removed.iter().copied(), base)?;
    let mut updated = by_id(update.updated_fragments, base)?;
    let changed: HashSet<u64> = updated.keys().copied().collect();
    let fields: HashSet<i32> = update
        .fields_modified
        .iter()
        .filter_map(|id| i32::try_from(*id).ok())
        .collect();
    let row_ids = draft.row_ids.clone();
    let known = field_ids(base);
    let mut gone = -1;
    draft.fragments = base.fragments.edited(|id, before| {
        let new = updated.remove(&id);
        if !removed.contains(&id) && new.is_none() {
            return Ok(Edit::Keep);
        }
        let before = Fragment::decode(before)?;
        gone = highest(&before).max(gone);
        let Some(mut fragment) = new.filter(|_| !removed.contains(&id)) else {
            return Ok(Edit::Remove);
        };
        if let (Some(row_ids), Some(offsets)) = (&row_ids, update.updated_fragment_offsets.get(&id)) {
            let offsets = offsets_of(offsets, fragment.physical_rows())?;
            let fragment_there = fragment.with_lineage_of(&before);
            fragment = row_ids.stamp_changed(&fragment_there, Some(&offsets))?;
        }
        // Others may have dropped columns since it was read, and cleaned their files up; their ids are not given out again.
        gone = highest(&fragment).max(gone);
        let fragment = fragment.with_files_kept(|file| holds_columns(file, &known));
        check_first_columns(&before, &fragment)?;
        Ok(Edit::Replace(fragment))
    })?;
    draft.gone_field_id = gone;
    draft.index_section = indices::forget_fragments(base, &changed, &fields)?;
    draft.max_fragment_id = push_fragments(&mut draft.fragments, &new, draft.max_fragment_id)?;
    Ok(draft)
}

/// The offsets of the rows that changed in place. Checked against the fragment's row count first, since a bitmap of a few bytes can hold
/// any number of offsets.
fn offsets_of(bitmap: &Bytes, physical_rows: Option<u64>) -> Result<Vec<u32>> {
    let offsets = changed_offsets(bitmap).map_err(|error| TableError::corrupt("Update", error.to_string()))?;
    match (offsets.max(), physical_rows) {
        (Some(row), Some(rows)) if u64::from(row) >= rows => {
            let message = format!("expected changed rows below {rows}, found row {row}");
            Err(TableError::invalid(message))
        }
        _ => Ok(offsets.into_iter().collect()),
    }
}

/// Whether the file holds a column of the table that no later file took over, or lineage of rows.
fn holds_columns(file: &crate::fragment::DataFile, known: &HashSet<i32>) -> bool {
    let is_held = |id: &i32| known.contains(id) || is_lineage_field(*id);
    file.fields.is_empty() || file.fields.iter().any(is_held)
}
