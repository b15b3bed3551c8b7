//! Updates the indices after a change to fragments and columns.

use std::collections::HashSet;

use bytes::Bytes;
use roaring::RoaringBitmap;

use crate::error::Result;
use crate::index::{decode_section, replace_section, Index};

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

/// Removes the fragments `changed` from the bitmaps of the indices on any of `fields`, whose values changed.
pub(super) fn forget_fragments(
    section: Option<&Bytes>,
    changed: &HashSet<u64>,
    fields: &HashSet<i32>,
) -> Result<Option<Bytes>> {
    if fields.is_empty() || changed.is_empty() {
        return Ok(section.cloned());
    }
    edit(section, |index| {
        if !index.fields().iter().any(|id| fields.contains(id)) {
            return Ok(Some(index));
        }
        without(index, changed).map(Some)
    })
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
