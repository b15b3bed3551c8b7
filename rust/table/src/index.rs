//! The indices of a version, as far as a commit must understand them to carry them along.
//!
//! A commit reads the names, columns and covered fragments of an index. Everything else is kept as encoded.

use std::io::Cursor;

use bytes::Bytes;
use esker_proto::lance::table as pb;
use prost::Message;
use roaring::RoaringBitmap;
use uuid::Uuid;

use crate::error::{Result, TableError};
use crate::fragment::under_base;
use crate::raw::RawMessage;

const INDICES: u32 = 1;
const UUID: u32 = 1;
const FRAGMENT_BITMAP: u32 = 5;
const DETAILS: u32 = 6;
const VERSION: u32 = 7;
const BASE_ID: u32 = 9;
const FILES: u32 = 10;
const WHAT: &str = "index";

/// Names of indices that belong to the table and not to a column.
const SYSTEM_PREFIX: &str = "__lance_";

/// Types whose entries name each row: by its stable id where the table has such, by its address otherwise.
const ROW_ID_KINDS: [&str; 5] = ["bitmap", "labellist", "ngram", "inverted", "vector"];

/// One segment of an index.
#[derive(Debug, Clone)]
pub struct Index {
    raw: RawMessage,
    head: pb::IndexMetadata,
}

impl PartialEq for Index {
    /// Equal if they encode to the same bytes.
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

/// The UUID of a message, if it is one.
pub(crate) fn uuid_from_proto(uuid: Option<&pb::Uuid>) -> Option<Uuid> {
    Uuid::from_slice(&uuid?.uuid).ok()
}

/// The UUID that `text` spells.
pub fn parse_uuid(text: &str) -> Result<Uuid> {
    Uuid::parse_str(text).map_err(|_| TableError::invalid(format!("expected a UUID, found {text:?}")))
}

/// The metadata of a new index.
#[derive(Debug, Clone, Default)]
pub struct NewIndex {
    /// Names its folder.
    pub uuid: Uuid,
    /// Segments of one index share it.
    pub name: String,
    /// The ids of the fields that it covers.
    pub fields: Vec<i32>,
    /// The version that it was built from.
    pub dataset_version: u64,
    /// The fragments that it covers.
    pub fragment_ids: Vec<u32>,
    /// Readers older than this must not use it.
    pub index_version: i32,
    /// Milliseconds since 1970.
    pub created_at: Option<u64>,
    /// The base path that its folder lies under.
    pub base_id: Option<u32>,
    /// What it needs to open itself: type URL and encoded message.
    pub details: Option<(String, Vec<u8>)>,
}

impl Index {
    /// An index that was just written.
    pub fn new(new: NewIndex) -> Result<Self> {
        let message = pb::IndexMetadata {
            uuid: Some(pb::Uuid {
                uuid: Bytes::copy_from_slice(new.uuid.as_bytes()),
            }),
            name: new.name,
            fields: new.fields,
            dataset_version: new.dataset_version,
            index_details: new
                .details
                .map(|(type_url, value)| prost_types::Any { type_url, value }),
            index_version: Some(new.index_version),
            created_at: new.created_at,
            base_id: new.base_id,
            ..Default::default()
        };
        let index = Self::decode(&Bytes::from(message.encode_to_vec()))?;
        index.with_fragment_bitmap(&new.fragment_ids.into_iter().collect())
    }

    /// Decodes one index message.
    pub fn decode(message: &Bytes) -> Result<Self> {
        Self::from_raw(RawMessage::decode(message).map_err(|error| error.of(WHAT))?)
    }

    fn from_raw(raw: RawMessage) -> Result<Self> {
        let head = pb::IndexMetadata::decode(raw.encode().as_slice());
        let head = head.map_err(|error| TableError::corrupt(WHAT, error.to_string()))?;
        Ok(Self { raw, head })
    }

    /// The index as one message, with all that [`Index::decode`] found in it.
    pub fn encode(&self) -> Vec<u8> {
        self.raw.encode()
    }

    /// What the message says, as far as esker knows it.
    pub fn metadata(&self) -> &pb::IndexMetadata {
        &self.head
    }

    /// Names its folder; `None` if the message has no valid one.
    pub fn uuid(&self) -> Option<Uuid> {
        uuid_from_proto(self.head.uuid.as_ref())
    }

    /// Where its files lie, for the store of its table.
    pub fn folder(&self) -> String {
        let id = self.uuid().map(|id| id.to_string()).unwrap_or_default();
        under_base(self.head.base_id, format!("_indices/{id}/"))
    }

    /// Segments of one index share the name.
    pub fn name(&self) -> &str {
        &self.head.name
    }

    /// The ids of the fields that it covers.
    pub fn fields(&self) -> &[i32] {
        &self.head.fields
    }

    /// Whether it belongs to the table and not to a column.
    pub fn is_system(&self) -> bool {
        self.head.name.starts_with(SYSTEM_PREFIX)
    }

    /// The name of its type: the last part of the type URL of its details, in lower case.
    fn kind(&self) -> String {
        let details = self.head.index_details.as_ref();
        let url = details.map(|details| details.type_url.as_str()).unwrap_or_default();
        let name = url.rsplit(['/', '.']).next().unwrap_or_default();
        name.trim_end_matches("IndexDetails").to_ascii_lowercase()
    }

    /// Whether it knows rows by their stable ids, in a table that has such: it stays right when rows move.
    pub(crate) fn holds_row_ids(&self) -> bool {
        ROW_ID_KINDS.contains(&self.kind().as_str())
    }

    /// Whether it knows rows by addresses that a reader translates by the fragment reuse index. Indices over runs of neighbours, of types
    /// that are not known, and those that belong to the table, do not.
    pub(crate) fn holds_addresses_of_rows(&self) -> bool {
        let kind = self.kind();
        !self.is_system() && (kind == "btree" || ROW_ID_KINDS.contains(&kind.as_str()))
    }

    /// The fragments that it covers; `None` if its writer did not note them.
    pub fn fragment_bitmap(&self) -> Result<Option<RoaringBitmap>> {
        if self.raw.get(FRAGMENT_BITMAP).is_none() {
            return Ok(None);
        }
        let bitmap = RoaringBitmap::deserialize_from(Cursor::new(&self.head.fragment_bitmap));
        let corrupt = |error| TableError::corrupt(WHAT, format!("expected a roaring bitmap of fragments: {error}"));
        bitmap.map(Some).map_err(corrupt)
    }

    /// The same index over other fragments.
    pub fn with_fragment_bitmap(mut self, bitmap: &RoaringBitmap) -> Result<Self> {
        let mut encoded = Vec::with_capacity(bitmap.serialized_size());
        let failed = |error: std::io::Error| TableError::corrupt(WHAT, error.to_string());
        bitmap.serialize_into(&mut encoded).map_err(failed)?;
        self.raw.set_bytes(FRAGMENT_BITMAP, &encoded);
        Self::from_raw(self.raw)
    }

    /// The same index in a shallow clone: files in the table's own root lie under base path `id` there.
    pub(crate) fn borrowed(mut self, id: u32) -> Result<Self> {
        if self.head.base_id.is_none() {
            // 0 is a valid id.
            self.raw.set_optional_varint(BASE_ID, Some(u64::from(id)));
        }
        Self::from_raw(self.raw)
    }

    /// The same index in a deep clone, which has a copy of the index's folder in its own root.
    pub(crate) fn at_home(mut self) -> Result<Self> {
        self.raw.remove(BASE_ID);
        Self::from_raw(self.raw)
    }

    /// The same index, rewritten under another UUID. Fields that are not given stay.
    pub(crate) fn rewritten(
        mut self,
        id: Uuid,
        details: Option<&[u8]>,
        version: Option<u32>,
        files: &[Bytes],
    ) -> Result<Self> {
        let uuid = pb::Uuid {
            uuid: Bytes::copy_from_slice(id.as_bytes()),
        };
        self.raw.set_bytes(UUID, &uuid.encode_to_vec());
        if let Some(details) = details {
            self.raw.set_bytes(DETAILS, details);
        }
        if let Some(version) = version {
            self.raw.set_optional_varint(VERSION, Some(u64::from(version)));
        }
        // The files of the old one are not those of the new one.
        self.raw.set_all_bytes(FILES, files.iter().map(AsRef::as_ref));
        Self::from_raw(self.raw)
    }
}

/// The indices of an encoded index section.
pub fn decode_section(section: &Bytes) -> Result<Vec<Index>> {
    let raw = RawMessage::decode(section).map_err(|error| error.of("index section"))?;
    raw.all(INDICES).map(|field| Index::decode(field.payload())).collect()
}

/// `section` with these indices; fields of newer writers stay.
pub(crate) fn replace_section(section: Option<&Bytes>, indices: &[Index]) -> Result<Option<Bytes>> {
    let empty = Bytes::new();
    let mut raw = RawMessage::decode(section.unwrap_or(&empty)).map_err(|error| error.of("index section"))?;
    let encoded: Vec<Vec<u8>> = indices.iter().map(Index::encode).collect();
    raw.set_all_bytes(INDICES, encoded.iter().map(Vec::as_slice));
    let encoded = raw.encode();
    Ok((!encoded.is_empty()).then(|| Bytes::from(encoded)))
}

#[cfg(test)]
mod tests;
