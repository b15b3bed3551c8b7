//! Updates the indices after a change to fragments and columns.

use std::collections::HashSet;

use bytes::Bytes;
use esker_file::schema::{Field, Schema};
use roaring::RoaringBitmap;

use crate::error::Result;
use crate::fragment_reuse::{entry_of, FragmentReuse};
use crate::index::{decode_section, replace_section, Index};
use crate::manifest::Manifest;

/// Decodes the index section, maps or drops each index by `change`, and encodes the result. An unchanged section keeps its bytes.
pub(super) fn edit(
    section: Option<&Bytes>,
    mut change: impl FnMut(Index) -> Result<Option<Index>>,
) -> Result<Option<Bytes>> {
    let Some(section) = section else {
        return Ok(None);
    };
    let before = decode_section(section)?;
    let mut after = Vec::with_capacity(before.len());
    for index in &before {
        after.extend(change(index.clone())?);
    }
    if after == before {
        return Ok(Some(section.clone()));
    }
    replace_section(Some(section), &after)
}

/// Drops the indices on dropped columns.
pub(super) fn keep_columns(section: Option<&Bytes>, field_ids: &HashSet<i32>) -> Result<Option<Bytes>> {
    edit(section, |index| {
        let kept = index.is_system() || index.fields().iter().all(|id| field_ids.contains(id));
        Ok(kept.then_some(index))
    })
}

/// The fields and those that they lie in, whose values changed with them: files of version 2.1 and later name items without their lists.
pub(super) fn with_parents(schema: &Schema, fields: &HashSet<i32>) -> HashSet<i32> {
    let mut all = fields.clone();
    for field in &schema.fields {
        add_parents(field, &mut all);
    }
    all
}

/// Whether `all` holds the field or one within it; adds it then.
fn add_parents(field: &Field, all: &mut HashSet<i32>) -> bool {
    let mut is_held = all.contains(&field.id);
    for child in &field.children {
        is_held |= add_parents(child, all);
    }
    if is_held {
        all.insert(field.id);
    }
    is_held
}

/// Removes the fragments `changed` from the bitmaps of the indices on any of `fields`, or on one around it, whose values changed.
pub(super) fn forget_fragments(
    base: &Manifest,
    changed: &HashSet<u64>,
    fields: &HashSet<i32>,
) -> Result<Option<Bytes>> {
    let section = base.index_section.as_ref();
    if fields.is_empty() || changed.is_empty() {
        return Ok(section.cloned());
    }
    let fields = with_parents(base.schema()?.as_ref(), fields);
    let mut present = HashSet::new();
    for summary in base.fragments.summaries() {
        present.insert(summary?.id);
    }
    let reuse = match section {
        Some(section) => known_reuse(&decode_section(section)?)?,
        None => Reused::Known(FragmentReuse::default()),
    };
    edit(section, |index| {
        if !index.fields().iter().any(|id| fields.contains(id)) {
            return Ok(Some(index));
        }
        match &reuse {
            Reused::Known(reuse) => without(index, &reuse.with_ancestors(changed)).map(Some),
            // Which fragments the changed ones were made from is not known here: all that are gone may be among them.
            Reused::InFile => {
                let listed = index.fragment_bitmap()?.unwrap_or_default();
                let gone = listed.into_iter().map(u64::from).filter(|id| !present.contains(id));
                without(index, &gone.chain(changed.iter().copied()).collect()).map(Some)
            }
        }
    })
}

/// The fragment reuse index, as far as a commit that reads no other file can know it.
enum Reused {
    Known(FragmentReuse),
    InFile,
}

fn known_reuse(indices: &[Index]) -> Result<Reused> {
    Ok(match entry_of(indices) {
        None => Reused::Known(FragmentReuse::default()),
        Some(entry) => FragmentReuse::inline(entry)?.map_or(Reused::InFile, Reused::Known),
    })
}

/// The indices with one more.
pub(super) fn with(section: Option<&Bytes>, more: Option<&Index>) -> Result<Option<Bytes>> {
    let Some(more) = more else {
        return Ok(section.cloned());
    };
    let mut indices = section.map(decode_section).transpose()?.unwrap_or_default();
    indices.push(more.clone());
    replace_section(section, &indices)
}

/// The index with some fragments removed from its bitmap.
pub(super) fn without(index: Index, fragments: &HashSet<u64>) -> Result<Index> {
    let Some(before) = index.fragment_bitmap()? else {
        return Ok(index);
    };
    let gone: RoaringBitmap = fragments.iter().filter_map(|id| u32::try_from(*id).ok()).collect();
    let after = &before - gone;
    if after == before {
        return Ok(index);
    }
    index.with_fragment_bitmap(&after)
}
