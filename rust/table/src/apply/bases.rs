//! UpdateBases and Clone: base paths, the roots of files outside of the table's own root.

use bytes::Bytes;
use esker_proto::lance::table as pb;
use prost::Message;

use super::draft::Draft;
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::fragment_list::Edit;
use crate::index::{decode_section, replace_section, Index};
use crate::manifest::{field, Manifest};
use crate::raw::RawMessage;

pub(super) fn update_bases(base: &Manifest, new: Vec<pb::BasePath>) -> Result<Draft> {
    let mut draft = Draft::of(base)?;
    set_bases(&mut draft.raw, &with_new_bases(base.base_paths(), new)?);
    Ok(draft)
}

/// A shallow clone of `source`: files in the source's own root lie under a new base path.
pub(super) fn shallow_clone(source: &Manifest, path: &str, name: Option<&str>) -> Result<Draft> {
    let mut draft = Draft::of(source)?;
    let mut bases = source.base_paths().to_vec();
    // The first is 0, as Lance has it.
    let id = match bases.iter().map(|base| base.id).max() {
        Some(highest) => next_id(highest)?,
        None => 0,
    };
    bases.push(pb::BasePath {
        id,
        name: name.map(str::to_owned),
        is_dataset_root: true,
        path: path.to_owned(),
    });
    set_bases(&mut draft.raw, &bases);
    draft.fragments = source
        .fragments
        .edited(|_, message| Ok(Edit::Replace(movable(message)?.borrowed(id))))?;
    if let Some(section) = &source.index_section {
        let indices = decode_section(section)?.into_iter().map(|index| index.borrowed(id));
        draft.index_section = replace_section(Some(section), &indices.collect::<Result<Vec<_>>>()?)?;
    }
    Ok(draft)
}

/// A deep clone of `source`: the new table holds copies of all files in its own root.
pub(super) fn deep_clone(source: &Manifest) -> Result<Draft> {
    let mut draft = Draft::of(source)?;
    set_bases(&mut draft.raw, &[]);
    draft.fragments = source
        .fragments
        .edited(|_, message| Ok(Edit::Replace(movable(message)?.at_home())))?;
    if let Some(section) = &source.index_section {
        let indices = decode_section(section)?.into_iter().map(Index::at_home);
        draft.index_section = replace_section(Some(section), &indices.collect::<Result<Vec<_>>>()?)?;
    }
    Ok(draft)
}

/// The fragment, checked to mean the same in another table.
fn movable(message: &Bytes) -> Result<Fragment> {
    let fragment = Fragment::decode(message)?;
    if fragment.has_external_lineage() {
        return Err(TableError::unsupported(format!(
            "fragment {} keeps row ids in a file of its own: such tables are read, but cannot be cloned yet",
            fragment.id()
        )));
    }
    Ok(fragment)
}

/// The table's base paths and the new ones; new ones with id 0 get ids from 1 on.
pub(super) fn with_new_bases(old: &[pb::BasePath], new: Vec<pb::BasePath>) -> Result<Vec<pb::BasePath>> {
    let mut bases = old.to_vec();
    for mut added in new {
        let same = bases.iter().find(|old| {
            old.path == added.path
                || (old.name.is_some() && old.name == added.name)
                || (added.id != 0 && old.id == added.id)
        });
        if let Some(same) = same {
            return Err(TableError::invalid(format!(
                "expected new base paths, found '{}', whose id, name or path '{}' has already",
                added.path, same.path
            )));
        }
        if added.id == 0 {
            added.id = next_id(bases.iter().map(|old| old.id).max().unwrap_or(0))?;
        }
        bases.push(added);
    }
    Ok(bases)
}

pub(super) fn set_bases(raw: &mut RawMessage, bases: &[pb::BasePath]) {
    let encoded: Vec<Vec<u8>> = bases.iter().map(Message::encode_to_vec).collect();
    raw.set_all_bytes(field::BASE_PATHS, encoded.iter().map(Vec::as_slice));
}

fn next_id(highest: u32) -> Result<u32> {
    let full = || TableError::unsupported("the table has used up all ids of base paths");
    highest.checked_add(1).ok_or_else(full)
}
