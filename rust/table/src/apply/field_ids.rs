//! Field ids that were given out and are no longer in use, neither in the schema nor in any file.
//!
//! A staged file may still name such an id. If it were given out again, the file's values would appear in another column. So the config
//! notes the highest id as soon as the last column or file with it is removed. Other writers ignore this key but carry it along.

use std::collections::{HashMap, HashSet};

use esker_proto::lance::file;
use prost::Message;

use super::draft::{config_of, set_config};
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::manifest::{field, noted_field_id, Manifest, MAX_FIELD_ID};
use crate::operation::NewSchema;
use crate::raw::RawMessage;

/// Notes `gone`, the highest field id that a change removes, in the config, unless a column or the noted id is at least as high.
pub(super) fn remember(raw: &mut RawMessage, gone: i32) -> Result<()> {
    let corrupt = |error: prost::DecodeError| TableError::corrupt("schema", error.to_string());
    let mut shown = -1;
    for column in raw.all(field::SCHEMA) {
        shown = shown.max(file::Field::decode(column.payload().clone()).map_err(corrupt)?.id);
    }
    if gone <= shown {
        return Ok(());
    }
    let mut config = config_of(raw)?;
    if noted_field_id(&config).is_none_or(|noted| noted < gone) {
        config.insert(MAX_FIELD_ID.into(), gone.to_string());
        set_config(raw, config)?;
    }
    Ok(())
}

/// Refuses columns whose ids mean other columns in `base`, as data files would be read as the wrong columns. This happens when a schema
/// went through Arrow, which has no field ids, and was numbered anew.
pub(super) fn check_kept(base: &Manifest, schema: &NewSchema) -> Result<()> {
    let refused = |id: i32, found: String| {
        Err(TableError::invalid(format!(
            "expected the table's field ids, found {id} {found}; derive the schema from the table's own, which has its ids"
        )))
    };
    let before: HashMap<i32, &file::Field> = base.schema_fields().iter().map(|field| (field.id, field)).collect();
    let after = schema.decoded()?;
    let mut dropped: Option<HashSet<i32>> = None;
    for field in &after {
        let Some(old) = before.get(&field.id) else {
            if dropped.is_none() {
                dropped = Some(ids_in_files(base)?);
            }
            if dropped.as_ref().is_some_and(|ids| ids.contains(&field.id)) {
                return refused(
                    field.id,
                    format!("for '{}', the id of a column that was dropped", field.name),
                );
            }
            continue;
        };
        if old.parent_id != field.parent_id || old.logical_type != field.logical_type {
            let (was, is) = (&old.logical_type, &field.logical_type);
            return refused(
                field.id,
                format!(
                    "for '{}' of type {is} in place of '{}' of type {was}",
                    field.name, old.name
                ),
            );
        }
        let moved = |other: &&file::Field| {
            other.parent_id == old.parent_id && other.name == old.name && !before.contains_key(&other.id)
        };
        let takes_a_name = || {
            before.values().any(|other| {
                other.parent_id == field.parent_id
                    && other.name == field.name
                    && after.iter().all(|kept| kept.id != other.id)
            })
        };
        if old.name != field.name && takes_a_name() && after.iter().any(|other| moved(&other)) {
            return refused(field.id, format!("for '{}' in place of '{}'", field.name, old.name));
        }
    }
    Ok(())
}

fn ids_in_files(base: &Manifest) -> Result<HashSet<i32>> {
    let mut ids = HashSet::new();
    for fragment in base.fragments() {
        ids.extend(fragment?.files().iter().flat_map(|file| file.fields.clone()));
    }
    Ok(ids)
}

/// The highest field id that a fragment's files name.
pub(super) fn highest(fragment: &Fragment) -> i32 {
    let ids = fragment.files().iter().flat_map(|file| &file.fields);
    ids.copied().max().unwrap_or(-1)
}
