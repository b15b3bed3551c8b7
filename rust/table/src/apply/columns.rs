//! Merge, Project, DataReplacement: columns are added, dropped, or get other data files.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use esker_file::schema::Schema;
use esker_proto::lance::table as pb;

use prost::Message;
use roaring::RoaringBitmap;

use super::draft::{set_map, Draft};
use super::field_ids::check_kept;
use super::fragments::{by_id, check_files, check_first_columns, check_present, field_ids};
use super::indices;
use super::repair::storage_version;
use crate::error::{Result, TableError};
use crate::fragment::{DataFile, Fragment};
use crate::fragment_list::Edit;
use crate::index::Index;
use crate::manifest::{field, Manifest};
use crate::operation::NewSchema;
use crate::raw::RawMessage;
use crate::row_ids::is_lineage_field;

pub(super) fn merge(base: &Manifest, fragments: &[Fragment], schema: &NewSchema) -> Result<Draft> {
    let version = storage_version(base)?;
    let mut draft = Draft::of(base)?;
    draft.gone_field_id = base.max_field_id()?;
    for fragment in fragments {
        draft.mixed_files |= check_files(
            fragment,
            &format!("fragment {}", fragment.id()),
            version,
            base.base_paths(),
        )?;
    }
    let mut merged = by_id(fragments.to_vec(), base)?;
    let ids = schema.field_ids()?;
    let row_ids = draft.row_ids.clone();
    let (mut changed, mut moved) = (HashSet::new(), HashSet::new());
    draft.fragments = base.fragments.edited(|id, before| {
        let Some(fragment) = merged.remove(&id) else {
            return Err(TableError::invalid(format!(
                "expected all fragments of the table in a Merge, found none of id {id}"
            )));
        };
        let old = Fragment::decode(before)?;
        let before = old.physical_rows();
        if before.is_some() && before != fragment.physical_rows() {
            return Err(TableError::invalid(format!(
                "expected fragment {id} with {} rows as before, found {}; a Merge changes columns only",
                before.unwrap_or_default(),
                fragment.physical_rows().unwrap_or_default()
            )));
        }
        let others = moved_fields(&old, &fragment);
        if !others.is_empty() {
            changed.insert(id);
            moved.extend(others);
        }
        // New files change the rows; the same files under new column names do not.
        let fragment = match &row_ids {
            Some(row_ids) if old.files() != fragment.files() => {
                row_ids.stamp_changed(&fragment.with_lineage_of(&old), None)?
            }
            _ => fragment,
        };
        // A file none of whose fields is a column, as after a cast, is named no more.
        let is_live = |id: &i32| ids.contains(id) || is_lineage_field(*id);
        let fragment = fragment.with_files_kept(|file| file.fields.is_empty() || file.fields.iter().any(is_live));
        check_first_columns(&old, &fragment)?;
        Ok(Edit::Replace(fragment))
    })?;
    set_schema(&mut draft, base, schema)?;
    let message = pb::Manifest {
        schema_metadata: schema.metadata().clone(),
        ..Default::default()
    };
    set_map(&mut draft.raw, field::SCHEMA_METADATA, &message)?;
    // What indices know of columns that lie in other files now is of before.
    let moved = match moved.is_empty() {
        true => moved,
        false => indices::with_parents(&schema.schema()?, &moved),
    };
    let indices = indices::forget_fragments(base, &changed, &moved)?;
    draft.index_section = indices::keep_columns(indices.as_ref(), &ids)?;
    Ok(draft)
}

/// Indices without the fragments in which their columns lie in other files at `base` than they did at `read`, of which they were made.
pub(super) fn without_moved(indices: Vec<Index>, read: &Manifest, base: &Manifest) -> Result<Vec<Index>> {
    let mut covered = RoaringBitmap::new();
    for index in indices.iter().filter(|index| !index.is_system()) {
        covered |= index.fragment_bitmap()?.unwrap_or_default();
    }
    let is_covered = |fragment: &Fragment| u32::try_from(fragment.id()).is_ok_and(|id| covered.contains(id));
    let mut then = HashMap::new();
    for fragment in read.fragments() {
        let fragment = fragment?;
        if is_covered(&fragment) {
            then.insert(fragment.id(), fragment);
        }
    }
    let schemas = [read.schema()?, base.schema()?];
    let mut moved: Vec<(u64, HashSet<i32>)> = Vec::new();
    for fragment in base.fragments() {
        let fragment = fragment?;
        if let Some(before) = then.get(&fragment.id()) {
            let fields = moved_fields(before, &fragment);
            if !fields.is_empty() {
                let around = |fields, schema: &Arc<Schema>| indices::with_parents(schema, &fields);
                moved.push((fragment.id(), schemas.iter().fold(fields, around)));
            }
        }
    }
    let keep = |index: Index| {
        let of_it = |(_, fields): &&(u64, HashSet<i32>)| index.fields().iter().any(|id| fields.contains(id));
        let gone: HashSet<u64> = moved.iter().filter(of_it).map(|(id, _)| *id).collect();
        indices::without(index, &gone)
    };
    indices.into_iter().map(keep).collect()
}

/// The fields whose values lie in other files of a fragment than before, or in none.
fn moved_fields(before: &Fragment, after: &Fragment) -> HashSet<i32> {
    let places = |fragment: &Fragment| {
        let files = fragment.files().iter();
        let fields = files.flat_map(|file| {
            let place = (file.base_id, file.path.clone());
            file.fields.iter().map(move |id| (*id, place.clone()))
        });
        fields.filter(|(id, _)| *id >= 0).collect::<HashSet<_>>()
    };
    if before.files() == after.files() {
        return HashSet::new();
    }
    let (before, after) = (places(before), places(after));
    before.symmetric_difference(&after).map(|(id, _)| *id).collect()
}

/// Replaces the schema. Unknown protobuf fields (of newer writers) of a column that stays are kept unless the transaction sets them.
fn set_schema(draft: &mut Draft, base: &Manifest, schema: &NewSchema) -> Result<()> {
    schema.schema()?.check_column_names(Some(base.schema()?.as_ref()))?;
    check_kept(base, schema)?;
    let mut before = HashMap::new();
    for old in draft.raw.all(field::SCHEMA) {
        before.insert(field_id(old.payload())?, old.payload().clone());
    }
    let mut fields = Vec::with_capacity(schema.fields().len());
    for new in schema.fields() {
        let mut raw = RawMessage::decode(new).map_err(|error| error.of("schema"))?;
        if let Some(old) = before.get(&field_id(new)?) {
            let old = RawMessage::decode(old).map_err(|error| error.of("schema"))?;
            raw.adopt(&old, |number| number > LAST_KNOWN || number == RESERVED);
        }
        fields.push(raw.encode());
    }
    draft.raw.set_all_bytes(field::SCHEMA, fields.iter().map(Vec::as_slice));
    Ok(())
}

/// The highest protobuf field number of `Field` that a schema decides on. Places in declared keys, 13 and 15, stay once they are set.
const LAST_KNOWN: u32 = 12;
/// The number below [`LAST_KNOWN`] that esker does not write.
const RESERVED: u32 = 11;

fn field_id(field: &Bytes) -> Result<i32> {
    let decoded = esker_proto::lance::file::Field::decode(field.clone());
    Ok(decoded
        .map_err(|error| TableError::corrupt("schema", error.to_string()))?
        .id)
}

pub(super) fn project(base: &Manifest, schema: &NewSchema) -> Result<Draft> {
    let ids = schema.field_ids()?;
    let mut draft = Draft::of(base)?;
    draft.gone_field_id = base.max_field_id()?;
    draft.fragments = base.fragments.edited(|_, before| {
        let before = Fragment::decode(before)?;
        let is_kept = |id: &i32| ids.contains(id) || is_lineage_field(*id);
        let wanted = |file: &DataFile| file.fields.iter().any(is_kept);
        if before.files().iter().all(wanted) {
            return Ok(Edit::Keep);
        }
        Ok(Edit::Replace(before.with_files_kept(wanted)))
    })?;
    set_schema(&mut draft, base, schema)?;
    draft.index_section = indices::keep_columns(base.index_section.as_ref(), &ids)?;
    Ok(draft)
}

pub(super) fn replace_data(base: &Manifest, replacements: &[(u64, DataFile)], read_version: u64) -> Result<Draft> {
    let replacements = of_columns_there(base, replacements, read_version)?;
    let changed: HashSet<u64> = replacements.iter().map(|(id, _)| *id).collect();
    check_present(changed.iter().copied(), base)?;
    let mut fields = HashSet::new();
    let mut mixed = false;
    let known = field_ids(base);
    let mut draft = Draft::of(base)?;
    let row_ids = draft.row_ids.clone();
    draft.fragments = base.fragments.edited(|id, before| {
        if !changed.contains(&id) {
            return Ok(Edit::Keep);
        }
        let mut fragment = Fragment::decode(before)?;
        for (_, file) in replacements.iter().filter(|(of, _)| *of == id) {
            fragment = replace_file(fragment, file, &known)?;
            fields.extend(file.fields.iter().copied());
        }
        mixed |= check_files(
            &fragment,
            &format!("fragment {id}"),
            storage_version(base)?,
            base.base_paths(),
        )?;
        if let Some(row_ids) = &row_ids {
            fragment = row_ids.stamp_changed(&fragment, None)?;
        }
        Ok(Edit::Replace(fragment))
    })?;
    draft.mixed_files |= mixed;
    draft.index_section = indices::forget_fragments(base, &changed, &fields)?;
    Ok(draft)
}

/// The replacement files of columns that the table still has. Other writers may have dropped some columns meanwhile.
fn of_columns_there(
    base: &Manifest,
    replacements: &[(u64, DataFile)],
    read_version: u64,
) -> Result<Vec<(u64, DataFile)>> {
    let ids = field_ids(base);
    let held = |file: &DataFile| file.fields.iter().any(|id| ids.contains(id));
    let foreign = replacements.iter().find(|(_, file)| !held(file));
    match foreign.filter(|_| read_version >= base.version()) {
        None => Ok(replacements.iter().filter(|(_, file)| held(file)).cloned().collect()),
        Some((_, file)) => Err(TableError::invalid(format!(
            "expected fields of the table's schema, found {:?} in {}",
            file.fields, file.path
        ))),
    }
}

/// Gives the fragment a file in place of what it holds of the same columns; columns that no file holds are all null.
///
/// A file is named no more where it has nothing left that the table knows. Files of version 0.1 are replaced whole: their
/// readers count pages from the first field.
fn replace_file(fragment: Fragment, file: &DataFile, known: &HashSet<i32>) -> Result<Fragment> {
    if let Some(position) = fragment.files().iter().position(|old| old.fields == file.fields) {
        return Ok(fragment.with_file_at(position, file.clone()));
    }
    let is_live = |id: &i32| known.contains(id) || is_lineage_field(*id);
    let stays = |old: &DataFile| old.fields.iter().any(|id| is_live(id) && !file.fields.contains(id));
    let gives = |old: &DataFile| old.fields.iter().any(|id| is_live(id) && file.fields.contains(id));
    let is_old = |old: &DataFile| (old.file_major_version, old.file_minor_version) < (2, 0);
    if let Some(old) = fragment
        .files()
        .iter()
        .find(|old| gives(old) && stays(old) && is_old(old))
    {
        return Err(TableError::invalid(format!(
            "expected a file with all columns of {} (file version 0.1) in fragment {}, found {:?} in {}",
            old.path,
            fragment.id(),
            file.fields,
            file.path
        )));
    }
    Ok(fragment
        .with_files_kept(|old| stays(old) || !gives(old))
        .with_replacing_file(file.clone()))
}
