//! New fragments: they are checked and get their ids.

use std::collections::{HashMap, HashSet};

use esker_file::version::FileVersion;
use esker_proto::lance::table as pb;

use crate::error::{Result, TableError};
use crate::fragment::{DataFile, Fragment, TAKEN_OVER};
use crate::fragment_list::FragmentList;
use crate::manifest::Manifest;
use crate::row_ids::{is_lineage_field, RowIdAllocator};

/// Gives the new fragments their ids and returns the highest id given out so far.
pub(super) fn push_fragments(list: &mut FragmentList, new: &[Fragment], highest: Option<u32>) -> Result<Option<u32>> {
    let mut highest = highest;
    let mut encoded = Vec::with_capacity(new.len());
    for fragment in new {
        let id = next_id(highest)?;
        encoded.push(fragment.clone().with_id(u64::from(id)).encode());
        highest = Some(id);
    }
    list.push_all(encoded.iter().map(Vec::as_slice))
        .map_err(|error| error.of("manifest"))?;
    Ok(highest)
}

/// The new fragments with row ids, in a table with stable row ids.
pub(super) fn with_row_ids(row_ids: Option<&mut RowIdAllocator>, new: &[Fragment]) -> Result<Vec<Fragment>> {
    match row_ids {
        Some(row_ids) => row_ids.stamp_new(new),
        None => without_row_ids(new),
    }
}

/// Refuses row ids in a table without stable row ids.
pub(super) fn without_row_ids(new: &[Fragment]) -> Result<Vec<Fragment>> {
    if new.iter().any(Fragment::has_row_ids) {
        return Err(TableError::invalid(
            "expected new fragments without row ids, as the table has no stable ones, found some; write them for this table",
        ));
    }
    Ok(new.to_vec())
}

/// The id after the highest one given out so far.
pub(super) fn next_id(highest: Option<u32>) -> Result<u32> {
    let id = highest.map_or(Some(0), |highest| highest.checked_add(1));
    id.ok_or_else(|| TableError::unsupported("the table has used up all 2^32 fragment ids"))
}

/// New fragments without the columns that others dropped since `read_version`: their field ids must not be taken for those of later
/// columns. If the transaction read `base` itself, nothing can have been dropped since, and an unknown column is an error. Files of 0.1
/// keep the id of their first column, by which readers find the others.
pub(super) fn without_dropped_columns(new: Vec<Fragment>, base: &Manifest, read_version: u64) -> Vec<Fragment> {
    if read_version >= base.version() {
        return new;
    }
    let ids = field_ids(base);
    let dropped = |file: &DataFile| file.fields.iter().any(|id| *id >= 0 && !ids.contains(id));
    let clean = |mut fragment: Fragment| {
        for (position, file) in fragment.files().to_vec().into_iter().enumerate() {
            if dropped(&file) {
                let first = first_of_all(&file);
                let kept = |id: &i32| {
                    if ids.contains(id) || first == Some(*id) {
                        *id
                    } else {
                        TAKEN_OVER
                    }
                };
                let fields = file.fields.iter().map(kept).collect();
                fragment = fragment.with_file_at(position, DataFile { fields, ..file });
            }
        }
        fragment
    };
    new.into_iter().map(clean).collect()
}

/// The id by which readers find all columns of a file: that of the first one in files of 0.1.
fn first_of_all(file: &DataFile) -> Option<i32> {
    let is_old = matches!(file.version(), Ok(FileVersion::V0_1));
    file.fields.first().filter(|_| is_old).copied()
}

/// The ids that files of new fragments may name: those of the table, and the first ones that [`without_dropped_columns`] leaves.
pub(super) fn known_ids(new: &[Fragment], base: &Manifest, read_version: u64) -> HashSet<i32> {
    let mut known = field_ids(base);
    if read_version < base.version() {
        known.extend(new.iter().flat_map(Fragment::files).filter_map(first_of_all));
    }
    known
}

/// Refuses a fragment in which a file of 0.1 has lost its first column to another file: nobody would find the others.
pub(super) fn check_first_columns(before: &Fragment, after: &Fragment) -> Result<()> {
    for file in after
        .files()
        .iter()
        .filter(|file| first_of_all(file) == Some(TAKEN_OVER))
    {
        let had = before.files().iter().find(|old| old.path == file.path);
        if had.and_then(first_of_all).is_some_and(|first| first != TAKEN_OVER) {
            return Err(TableError::unsupported(format!(
                "data/{}: its first column cannot move to another file alone, since readers of file version 0.1 find all columns of a \
                 file by its first one; write the table anew in a later file version (write_dataset(..., mode=\"overwrite\", \
                 data_storage_version=\"2.2\")), and change it then",
                file.path
            )));
        }
    }
    Ok(())
}

/// The ids of the table's fields.
pub(super) fn field_ids(base: &Manifest) -> HashSet<i32> {
    base.schema_fields().iter().map(|field| field.id).collect()
}

/// Checks what readers rely on; returns whether a file is of another version than the table's.
pub(super) fn check_new_fragments(
    fragments: &[Fragment],
    version: FileVersion,
    field_ids: &HashSet<i32>,
    bases: &[pb::BasePath],
) -> Result<bool> {
    let mut mixed = false;
    for (index, fragment) in fragments.iter().enumerate() {
        let name = format!("new fragment {index}");
        mixed |= check_files(fragment, &name, version, bases)?;
        for file in fragment.files() {
            if let Some(id) = file
                .fields
                .iter()
                .find(|id| **id != TAKEN_OVER && !is_lineage_field(**id) && !field_ids.contains(id))
            {
                return Err(TableError::invalid(format!(
                    "{name}: expected fields of the table's schema, found field {id} in {}",
                    file.path
                )));
            }
        }
    }
    Ok(mixed)
}

/// The same for an existing fragment, whose files may hold dropped columns. Files of 0.1 and of later versions do not mix, since readers
/// choose between the two formats by the table's version alone.
pub(super) fn check_files(
    fragment: &Fragment,
    name: &str,
    version: FileVersion,
    bases: &[pb::BasePath],
) -> Result<bool> {
    let mut mixed = false;
    let wrong = |message: String| Err(TableError::invalid(format!("{name}: {message}")));
    if fragment.physical_rows().is_none() {
        return wrong("expected its number of rows, found none; leave an empty fragment out".into());
    }
    for file in fragment.files() {
        let found = file.version()?;
        if (found == FileVersion::V0_1) != (version == FileVersion::V0_1) {
            return wrong(format!(
                "expected files that can stand beside those of version {version}, found {found} in {}; overwrite the table",
                file.path
            ));
        }
        mixed |= found != version;
        if let Some(id) = file.base_id.filter(|id| bases.iter().all(|base| base.id != *id)) {
            return wrong(format!(
                "expected a base path that the table declares, found {id} in {}; add it first",
                file.path
            ));
        }
        if version != FileVersion::V0_1 && file.column_indices.len() != file.fields.len() {
            let (columns, fields) = (file.column_indices.len(), file.fields.len());
            return wrong(format!(
                "expected a column for each of {fields} fields, found {columns} in {}",
                file.path
            ));
        }
    }
    Ok(mixed)
}

/// Fragments by id. Each id must occur once, and be in `base`.
pub(super) fn by_id(fragments: Vec<Fragment>, base: &Manifest) -> Result<HashMap<u64, Fragment>> {
    let mut found = HashMap::with_capacity(fragments.len());
    for fragment in fragments {
        let id = fragment.id();
        if found.insert(id, fragment).is_some() {
            return Err(TableError::invalid(format!(
                "expected each fragment once, found fragment {id} twice"
            )));
        }
    }
    check_present(found.keys().copied(), base)?;
    Ok(found)
}

/// Refuses ids of fragments that `base` does not have.
pub(super) fn check_present(ids: impl IntoIterator<Item = u64>, base: &Manifest) -> Result<()> {
    let mut missing: HashSet<u64> = ids.into_iter().collect();
    for summary in base.fragments.summaries() {
        missing.remove(&summary?.id);
    }
    match missing.iter().min() {
        None => Ok(()),
        Some(id) => Err(TableError::invalid(format!(
            "expected fragments of version {}, found fragment {id}, which it does not have; read the table again",
            base.version()
        ))),
    }
}
