//! Rewrite (compaction): new fragments with the same rows replace old ones.

use std::collections::HashSet;

use roaring::RoaringBitmap;
use uuid::Uuid;

use super::draft::Draft;
use super::field_ids::highest;
use super::fragments::{check_files, check_present, next_id};
use super::indices;
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::fragment_list::Edit;
use crate::index::Index;
use crate::manifest::Manifest;
use crate::operation::{Rewrite, RewriteGroup};

pub(super) fn rewrite(base: &Manifest, rewrite: &Rewrite) -> Result<Draft> {
    let mut draft = Draft::of(base)?;
    let version = base.data_storage_version()?;
    let mut old = HashSet::new();
    for fragment in rewrite.groups.iter().flat_map(|group| &group.old_fragments) {
        if !old.insert(fragment.id()) {
            return Err(TableError::invalid(format!(
                "expected each fragment in one group, found fragment {} twice",
                fragment.id()
            )));
        }
    }
    check_present(old.iter().copied(), base)?;
    let groups = number_new_fragments(base, rewrite, &mut draft.max_fragment_id)?;
    let mut new: Vec<Fragment> = groups
        .iter()
        .flat_map(|group| group.new_fragments.iter().cloned())
        .collect();
    for fragment in &new {
        draft.mixed_files |= check_files(
            fragment,
            &format!("rewritten fragment {}", fragment.id()),
            version,
            base.base_paths(),
        )?;
        if let Some(row_ids) = &draft.row_ids {
            row_ids.check_moved(fragment)?;
        }
    }
    new.sort_by_key(Fragment::id);
    let mut gone = -1;
    draft.fragments = base.fragments.edited(|id, before| {
        if !old.contains(&id) {
            return Ok(Edit::Keep);
        }
        gone = highest(&Fragment::decode(before)?).max(gone);
        Ok(Edit::Remove)
    })?;
    draft.gone_field_id = gone;
    draft.fragments = draft.fragments.with_sorted(&new)?;
    let mut rewritten = HashSet::new();
    draft.index_section = indices::edit(base.index_section.as_ref(), |index| {
        rewrite_index(index, rewrite, &groups, &old, &mut rewritten).map(Some)
    })?;
    match rewrite
        .rewritten_indices
        .iter()
        .find(|index| !rewritten.contains(&index.old_id))
    {
        None => Ok(draft),
        Some(missing) => Err(TableError::invalid(format!(
            "expected rewritten indices of the table, found {}, which it does not have",
            missing.old_id
        ))),
    }
}

/// The groups, with an id for each new fragment: its reserved id, or the next one.
fn number_new_fragments(base: &Manifest, rewrite: &Rewrite, highest: &mut Option<u32>) -> Result<Vec<RewriteGroup>> {
    let given_out = *highest;
    let mut taken: HashSet<u64> = HashSet::new();
    for summary in base.fragments.summaries() {
        taken.insert(summary?.id);
    }
    let mut groups = rewrite.groups.clone();
    for fragment in groups.iter_mut().flat_map(|group| &mut group.new_fragments) {
        let id = match fragment.id() {
            0 => {
                let id = next_id(*highest)?;
                *highest = Some(id);
                u64::from(id)
            }
            reserved => reserved,
        };
        let is_reserved = given_out.is_some_and(|given_out| id <= u64::from(given_out));
        if !taken.insert(id) || (fragment.id() != 0 && !is_reserved) {
            return Err(TableError::invalid(format!(
                "expected new fragments with reserved ids, or with id 0, found {id}; commit ReserveFragments first"
            )));
        }
        *fragment = fragment.clone().with_id(id);
    }
    Ok(groups)
}

/// A rewritten index covers the new fragments of the groups whose old fragments it covered. Every other index loses the old fragments, as
/// their row addresses are gone.
fn rewrite_index(
    index: Index,
    rewrite: &Rewrite,
    groups: &[RewriteGroup],
    old: &HashSet<u64>,
    rewritten: &mut HashSet<Uuid>,
) -> Result<Index> {
    let uuid = index.uuid();
    let Some(change) = rewrite
        .rewritten_indices
        .iter()
        .find(|change| Some(change.old_id) == uuid)
    else {
        return if index.is_system() {
            Ok(index)
        } else {
            indices::without(index, old)
        };
    };
    if !rewritten.insert(change.old_id) {
        return Err(TableError::invalid(format!(
            "expected each rewritten index once, found {} twice",
            change.old_id
        )));
    }
    let Some(mut bitmap) = index.fragment_bitmap()? else {
        return Err(TableError::invalid(format!(
            "expected rewritten indices that list their fragments, found {}, which does not",
            change.old_id
        )));
    };
    for group in groups {
        let ids = |fragments: &[Fragment]| -> RoaringBitmap {
            let ids = fragments
                .iter()
                .filter_map(|fragment| u32::try_from(fragment.id()).ok());
            ids.collect()
        };
        let before = ids(&group.old_fragments);
        let covered = &before & &bitmap;
        if covered.is_empty() {
            continue;
        }
        if covered != before {
            return Err(TableError::invalid(format!(
                "expected groups whose fragments are all covered by index {} or all not, found one that is partly; \
                 rewrite them apart",
                change.old_id
            )));
        }
        bitmap -= before;
        bitmap |= ids(&group.new_fragments);
    }
    let details = change.encoded_details();
    let version = (change.new_version != 0).then_some(change.new_version);
    index
        .with_fragment_bitmap(&bitmap)?
        .rewritten(change.new_id, details.as_deref(), version, &change.new_files)
}
