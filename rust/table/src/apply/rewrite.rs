//! Rewrite (compaction): new fragments with the same rows replace old ones.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::draft::Draft;
use super::field_ids::highest;
use super::fragments::{check_files, check_present, next_id};
use super::indices;
use super::repair::storage_version;
use crate::carry::{CarriedRewrite, Reuse};
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::fragment_list::Edit;
use crate::fragment_reuse::{entry_of, ids_of, FragmentReuse, NAME};
use crate::index::Index;
use crate::manifest::Manifest;
use crate::operation::{Rewrite, RewriteGroup};

pub(super) fn rewrite(base: &Manifest, carried: &CarriedRewrite) -> Result<Draft> {
    let CarriedRewrite { rewrite, reuse } = carried;
    let mut draft = Draft::of(base)?;
    let version = storage_version(base)?;
    let mut old = HashMap::new();
    for fragment in rewrite.groups.iter().flat_map(|group| &group.old_fragments) {
        if old.insert(fragment.id(), fragment.deletion_file()).is_some() {
            return Err(TableError::invalid(format!(
                "expected each fragment in one group, found fragment {} twice",
                fragment.id()
            )));
        }
    }
    check_present(old.keys().copied(), base)?;
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
        let Some(deletions) = old.get(&id) else {
            return Ok(Edit::Keep);
        };
        let before = Fragment::decode(before)?;
        if before.deletion_file() != *deletions {
            return Err(TableError::invalid(format!(
                "expected the deleted rows that fragment {id} had when it was rewritten, found others; rewrite it again"
            )));
        }
        gone = highest(&before).max(gone);
        Ok(Edit::Remove)
    })?;
    draft.gone_field_id = gone;
    draft.fragments = draft.fragments.with_sorted(&new)?;
    let mut rewritten = HashSet::new();
    let moves = Moves {
        rewrite,
        groups: &groups,
        reuse,
        stable_row_ids: base.has_stable_row_ids(),
    };
    draft.index_section = indices::edit(base.index_section.as_ref(), |index| {
        if index.name() == NAME {
            return Ok(None);
        }
        moves.index(index, &mut rewritten).map(Some)
    })?;
    draft.index_section = indices::with(draft.index_section.as_ref(), reuse.entry.as_ref())?;
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

/// The fragment reuse index of `base`, for a Rewrite that notes nothing in it.
pub(super) fn reuse_as_before(base: &Manifest) -> Result<Reuse> {
    let indices = base.indices()?;
    let entry = entry_of(&indices).cloned();
    let before = entry.as_ref().map(FragmentReuse::inline).transpose()?.flatten();
    if entry.is_some() && before.is_none() {
        return Err(TableError::unsupported(
            "a Rewrite of this table needs its store, as its fragment reuse index lies in a file; pass the store",
        ));
    }
    Ok(Reuse {
        before: before.unwrap_or_default(),
        noted: Vec::new(),
        entry,
    })
}

impl Rewrite {
    /// The groups with the ids that new fragments get on top of `base`.
    pub(crate) fn numbered(&self, base: &Manifest) -> Result<Vec<RewriteGroup>> {
        number_new_fragments(base, self, &mut base.max_fragment_id()?)
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

/// What a Rewrite does to the indices.
struct Moves<'a> {
    rewrite: &'a Rewrite,
    /// With the ids of the new fragments.
    groups: &'a [RewriteGroup],
    reuse: &'a Reuse,
    stable_row_ids: bool,
}

impl Moves<'_> {
    /// The index after the Rewrite. One that was remapped, or that knows rows by their stable ids, covers the new fragments of the groups
    /// that it covered. One whose moves are noted in the fragment reuse index lists the old fragments still. All others lose them, as
    /// the addresses of their rows are gone.
    fn index(&self, index: Index, rewritten: &mut HashSet<Uuid>) -> Result<Index> {
        let uuid = index.uuid();
        let changes = &self.rewrite.rewritten_indices;
        let Some(change) = changes.iter().find(|change| Some(change.old_id) == uuid) else {
            return match self.stable_row_ids && index.holds_row_ids() {
                true => self.moved(index),
                false => self.forgotten(index),
            };
        };
        if !rewritten.insert(change.old_id) {
            return Err(TableError::invalid(format!(
                "expected each rewritten index once, found {} twice",
                change.old_id
            )));
        }
        let Some(bitmap) = index.fragment_bitmap()? else {
            return Err(TableError::invalid(format!(
                "expected rewritten indices that list their fragments, found {}, which does not",
                change.old_id
            )));
        };
        let mut bitmap = self.reuse.before.covered(&bitmap);
        for group in self.groups {
            let before = ids_of(&group.old_fragments);
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
            bitmap |= ids_of(&group.new_fragments);
        }
        let details = change.encoded_details();
        let version = (change.new_version != 0).then_some(change.new_version);
        index
            .with_fragment_bitmap(&bitmap)?
            .rewritten(change.new_id, details.as_deref(), version, &change.new_files)
    }

    /// An index that knows rows by their stable ids.
    fn moved(&self, index: Index) -> Result<Index> {
        let Some(mut bitmap) = index.fragment_bitmap()? else {
            return Ok(index);
        };
        let unchanged = bitmap.clone();
        for group in self.groups {
            let before = ids_of(&group.old_fragments);
            let covered = before.is_subset(&bitmap);
            bitmap -= before;
            if covered {
                bitmap |= ids_of(&group.new_fragments);
            }
        }
        if bitmap == unchanged {
            return Ok(index);
        }
        index.with_fragment_bitmap(&bitmap)
    }

    /// An index that knows rows by their addresses.
    fn forgotten(&self, index: Index) -> Result<Index> {
        let listed = index.fragment_bitmap()?;
        let (Some(listed), false) = (listed, index.is_system()) else {
            return Ok(index);
        };
        let covered = self.reuse.before.covered(&listed);
        let follows = index.holds_addresses_of_rows();
        let mut gone = HashSet::new();
        let noted = self
            .reuse
            .noted
            .iter()
            .map(Option::as_ref)
            .chain(std::iter::repeat(None));
        for (group, noted) in self.groups.iter().zip(noted) {
            let stays = follows && noted.is_some_and(|old| old.is_subset(&covered));
            if !stays {
                gone.extend(group.old_fragments.iter().map(Fragment::id));
                gone.extend(noted.into_iter().flatten().map(u64::from));
            }
        }
        indices::without(index, &self.reuse.before.with_ancestors(&gone))
    }
}
