//! Entries: one object at one path, its encoding, and its identity.

use std::collections::BTreeMap;

use esker_proto::google::Timestamp;
use esker_proto::graveler::catalog;
use prost::Message;

use crate::error::{GravelerError, Result};
use crate::ident::Identity;
use crate::value::Value;
use crate::varint::put_uvarint;

/// How an entry's address is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressType {
    /// An old entry without a type: an address with a scheme is full, others are relative.
    ByPrefix,
    /// Below the repository's root.
    #[default]
    Relative,
    /// A full URI.
    Full,
}

/// The metadata of one object in a range.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// Where the bytes are.
    pub address: String,
    /// How to read that.
    pub address_type: AddressType,
    /// When they were put there: seconds and nanoseconds since the Unix epoch.
    pub last_modified: Option<(i64, i32)>,
    /// In bytes.
    pub size: i64,
    /// A hash of the bytes.
    pub e_tag: String,
    /// The user's own keys and values.
    pub metadata: BTreeMap<String, String>,
    /// A media type, or empty.
    pub content_type: String,
}

impl Entry {
    /// The identity, by which two entries are compared: the hash of size, hash, metadata and media type, without path, address and time.
    pub fn identity(&self) -> [u8; 32] {
        let mut identity = Identity::new();
        identity.integer(self.size).string(&self.e_tag).map(&self.metadata);
        if !self.content_type.is_empty() {
            identity.string(&self.content_type);
        }
        identity.hash()
    }

    /// The message.
    pub fn encode(self) -> Vec<u8> {
        use catalog::entry::AddressType as Kind;
        let address_type = match self.address_type {
            AddressType::ByPrefix => Kind::ByPrefix,
            AddressType::Relative => Kind::Relative,
            AddressType::Full => Kind::Full,
        };
        let message = catalog::Entry {
            address: self.address,
            last_modified: self.last_modified.map(|(seconds, nanos)| Timestamp { seconds, nanos }),
            size: self.size,
            e_tag: self.e_tag,
            metadata: self.metadata,
            address_type: address_type.into(),
            content_type: self.content_type,
        };
        message.encode_to_vec()
    }

    /// The framed value: identity and message.
    pub fn encode_value(self) -> Vec<u8> {
        let identity = self.identity();
        let value = Value {
            identity: &identity,
            data: &self.encode(),
        };
        value.encode()
    }

    /// Reads a message.
    pub fn decode(data: &[u8]) -> Result<Self> {
        let message =
            catalog::Entry::decode(data).map_err(|error| GravelerError::corrupt("entry", error.to_string()))?;
        let address_type = match message.address_type {
            0 => AddressType::ByPrefix,
            1 => AddressType::Relative,
            2 => AddressType::Full,
            other => {
                return Err(GravelerError::unsupported(
                    "entry",
                    format!("expected the address type 0, 1 or 2, found {other}; a newer release may know it"),
                ))
            }
        };
        Ok(Entry {
            address: message.address,
            address_type,
            last_modified: message.last_modified.map(|time| (time.seconds, time.nanos)),
            size: message.size,
            e_tag: message.e_tag,
            metadata: message.metadata,
            content_type: message.content_type,
        })
    }
}

/// A borrowed entry without metadata, so that a commit of a million objects does not allocate for each.
#[derive(Debug, Clone, Copy, Default)]
pub struct EntryRef<'a> {
    /// Where the bytes are.
    pub address: &'a str,
    /// How to read that.
    pub address_type: AddressType,
    /// When they were put there: seconds and nanoseconds since the Unix epoch.
    pub last_modified: Option<(i64, i32)>,
    /// In bytes.
    pub size: i64,
    /// A hash of the bytes.
    pub e_tag: &'a str,
    /// A media type, or empty.
    pub content_type: &'a str,
}

/// Encodes entries without metadata one after the other, reusing its buffers.
#[derive(Debug, Default)]
pub struct EntryEncoder {
    identity: Identity,
    data: Vec<u8>,
    time: Vec<u8>,
}

impl EntryEncoder {
    /// Appends the framed value of an entry.
    pub fn encode_value_to(&mut self, entry: EntryRef<'_>, buffer: &mut Vec<u8>) {
        self.identity.clear();
        self.identity
            .integer(entry.size)
            .string(entry.e_tag)
            .map(&BTreeMap::new());
        if !entry.content_type.is_empty() {
            self.identity.string(entry.content_type);
        }
        let identity = self.identity.hash();
        self.data.clear();
        self.text(1, entry.address);
        if let Some((seconds, nanos)) = entry.last_modified {
            self.time.clear();
            put_field(&mut self.time, 1, seconds.cast_unsigned());
            put_field(&mut self.time, 2, i64::from(nanos).cast_unsigned());
            self.data.push(0x12);
            put_uvarint(&mut self.data, self.time.len() as u64);
            self.data.extend_from_slice(&self.time);
        }
        put_field(&mut self.data, 3, entry.size.cast_unsigned());
        self.text(4, entry.e_tag);
        let address_type = match entry.address_type {
            AddressType::ByPrefix => 0,
            AddressType::Relative => 1,
            AddressType::Full => 2,
        };
        put_field(&mut self.data, 6, address_type);
        self.text(7, entry.content_type);
        let value = Value {
            identity: &identity,
            data: &self.data,
        };
        value.encode_to(buffer);
    }

    fn text(&mut self, field: u8, text: &str) {
        if !text.is_empty() {
            self.data.push(field << 3 | 2);
            put_uvarint(&mut self.data, text.len() as u64);
            self.data.extend_from_slice(text.as_bytes());
        }
    }
}

/// Appends a varint field, unless it is 0, which protobuf leaves out.
fn put_field(buffer: &mut Vec<u8>, field: u8, value: u64) {
    if value != 0 {
        buffer.push(field << 3);
        put_uvarint(buffer, value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn test_borrowed_parts_are_encoded_like_a_message(
            address in ".{0,40}", e_tag in "[0-9a-f]{0,32}", content_type in ".{0,10}", size in any::<i64>(),
            time in prop::option::of((any::<i64>(), any::<i32>())), kind in 0..3usize
        ) {
            let address_type = [AddressType::ByPrefix, AddressType::Relative, AddressType::Full][kind];
            let mut buffer = Vec::new();
            let borrowed = EntryRef { address: &address, address_type, last_modified: time, size, e_tag: &e_tag, content_type: &content_type };
            EntryEncoder::default().encode_value_to(borrowed, &mut buffer);
            let owned = Entry { address, address_type, last_modified: time, size, e_tag, content_type, metadata: BTreeMap::new() };
            prop_assert_eq!(buffer, owned.encode_value());
        }
    }

    #[test]
    fn test_the_identity_leaves_out_where_and_when() {
        let entry = Entry {
            address: "data/a".into(),
            size: 7,
            e_tag: "00".into(),
            last_modified: Some((1, 2)),
            ..Entry::default()
        };
        let moved = Entry {
            address: "s3://elsewhere/a".into(),
            address_type: AddressType::Full,
            last_modified: None,
            ..entry.clone()
        };
        assert_eq!(entry.identity(), moved.identity());
        let grown = Entry {
            size: 8,
            ..entry.clone()
        };
        let named = Entry {
            content_type: "text/plain".into(),
            ..entry.clone()
        };
        assert_ne!(entry.identity(), grown.identity());
        assert_ne!(entry.identity(), named.identity());
        assert_eq!(Entry::decode(&entry.clone().encode()).unwrap(), entry);
    }
}
