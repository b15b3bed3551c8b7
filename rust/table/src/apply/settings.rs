//! CreateIndex, UpdateConfig, ReserveFragments: changes that leave the rows as they are.

use bytes::Bytes;
use esker_file::schema::DeclaredKeys;
use esker_proto::lance::table as pb;
use prost::Message;

use super::draft::{config_of, set_config, set_map, Draft};
use super::fragments::field_ids;
use crate::error::{Result, TableError};
use crate::index::{decode_section, replace_section, Index};
use crate::manifest::{field, noted_field_id, Manifest, MAX_FIELD_ID};
use crate::operation::{MapUpdate, UpdateConfig};
use crate::raw::RawMessage;

/// The protobuf field number of a schema field's metadata.
const FIELD_METADATA: u32 = 10;
const PRIMARY_KEY: u32 = 12;
const PRIMARY_POSITION: u32 = 13;
const CLUSTERING_POSITION: u32 = 15;

pub(super) fn create_index(base: &Manifest, new: Vec<Index>, removed: &[Index]) -> Result<Draft> {
    let ids = field_ids(base);
    if let Some(id) = new.iter().flat_map(Index::fields).find(|id| !ids.contains(id)) {
        return Err(TableError::invalid(format!(
            "expected an index on columns of the table, found one on field {id}, which it does not have; read the table again"
        )));
    }
    let mut draft = Draft::of(base)?;
    let section = base.index_section.as_ref();
    let mut indices = section.map(decode_section).transpose()?.unwrap_or_default();
    indices.retain(|index| {
        let is_removed = removed
            .iter()
            .any(|gone| gone.uuid().is_some() && gone.uuid() == index.uuid());
        !is_removed && !new.iter().any(|new| new.name() == index.name())
    });
    indices.extend(new);
    draft.index_section = replace_section(section, &indices)?;
    Ok(draft)
}

pub(super) fn reserve_fragments(base: &Manifest, count: u32) -> Result<Draft> {
    let mut draft = Draft::of(base)?;
    // Ids start at 0, so if none was given out, 0 to `count - 1` would suffice. Lance reserves one more then, and so does esker.
    let highest = draft.max_fragment_id.unwrap_or(0).checked_add(count);
    let full = || TableError::unsupported("the table has used up all 2^32 fragment ids");
    draft.max_fragment_id = Some(highest.ok_or_else(full)?);
    Ok(draft)
}

pub(super) fn update_config(base: &Manifest, update: &UpdateConfig) -> Result<Draft> {
    let mut draft = Draft::of(base)?;
    if let Some(change) = &update.config {
        let mut config = config_of(&draft.raw)?;
        let noted = noted_field_id(&config);
        change.apply(&mut config);
        // A replaced config must keep the noted field id.
        if let Some(noted) = noted.filter(|noted| noted_field_id(&config).is_none_or(|id| id < *noted)) {
            config.insert(MAX_FIELD_ID.into(), noted.to_string());
        }
        set_config(&mut draft.raw, config)?;
    }
    if let Some(change) = &update.table_metadata {
        let mut table_metadata = base.table_metadata().clone();
        change.apply(&mut table_metadata);
        let message = pb::Manifest {
            table_metadata,
            ..Default::default()
        };
        set_map(&mut draft.raw, field::TABLE_METADATA, &message)?;
    }
    if let Some(change) = &update.schema_metadata {
        let mut schema_metadata = base.schema_metadata().clone();
        change.apply(&mut schema_metadata);
        let message = pb::Manifest {
            schema_metadata,
            ..Default::default()
        };
        set_map(&mut draft.raw, field::SCHEMA_METADATA, &message)?;
    }
    for (id, change) in &update.field_metadata {
        update_field(&mut draft.raw, *id, change)?;
    }
    Ok(draft)
}

/// What the metadata of a field say of keys.
fn declared_keys(field: &esker_proto::lance::file::Field) -> DeclaredKeys {
    let text = |key: &str| {
        field
            .metadata
            .get(key)
            .and_then(|value| std::str::from_utf8(value).ok())
    };
    DeclaredKeys::of(text)
}

/// Writes it where readers look for it.
fn set_keys(field: &mut RawMessage, declared: DeclaredKeys) {
    for (number, value) in [
        (PRIMARY_KEY, u32::from(declared.is_primary)),
        (PRIMARY_POSITION, declared.primary_position),
        (CLUSTERING_POSITION, declared.clustering_position),
    ] {
        field.set_optional_varint(number, Some(u64::from(value)).filter(|value| *value > 0));
    }
}

/// Changes the metadata of one field of the schema and leaves the rest of it as it is.
fn update_field(raw: &mut RawMessage, id: i32, change: &MapUpdate) -> Result<()> {
    let corrupt = |error: prost::DecodeError| TableError::corrupt("schema", error.to_string());
    let mut fields: Vec<Bytes> = raw.all(field::SCHEMA).map(|field| field.payload().clone()).collect();
    for encoded in &mut fields {
        let mut decoded = esker_proto::lance::file::Field::decode(encoded.clone()).map_err(corrupt)?;
        if decoded.id != id {
            continue;
        }
        let before = declared_keys(&decoded);
        change.apply(&mut decoded.metadata);
        let after = declared_keys(&decoded);
        if before != DeclaredKeys::default() && before != after {
            return Err(TableError::invalid(format!(
                "column '{}': its place in a declared key is a reserved key and cannot be changed once set; write the table anew",
                decoded.name
            )));
        }
        let message = esker_proto::lance::file::Field {
            metadata: decoded.metadata,
            ..Default::default()
        };
        let mut changed = RawMessage::decode(encoded).map_err(|error| error.of("schema"))?;
        set_map(&mut changed, FIELD_METADATA, &message)?;
        if before != after {
            set_keys(&mut changed, after);
        }
        *encoded = Bytes::from(changed.encode());
        raw.set_all_bytes(field::SCHEMA, fields.iter().map(AsRef::as_ref));
        return Ok(());
    }
    Err(TableError::invalid(format!(
        "expected the id of a field of the table, found {id}, which it does not have"
    )))
}
