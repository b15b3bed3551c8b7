//! The properties block: names and values about a table, sorted by name.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::block_cursor::BlockCursor;
use super::block_writer::BlockWriter;
use crate::error::{GravelerError, Result};
use crate::varint::{put_uvarint, uvarint};

/// The metaindex's only entry.
pub const PROPERTIES: &str = "rocksdb.properties";
/// The restart interval: all keys but the first are prefix-compressed.
const NEVER: usize = 1 << 31;
/// The total size in bytes that decoded names may always have, even in a small block.
const NAMES_ROOM: usize = 64 << 10;
const COMPRESSION_OPTIONS: &[u8] =
    b"window_bits=-14; level=32767; strategy=0; max_dict_bytes=0; zstd_max_train_bytes=0; enabled=0; ";

/// The caller's properties of a table: lakeFS has `type`, `min_key`, `max_key`, `count` and `estimated_size_bytes`.
pub type UserProperties = BTreeMap<String, Vec<u8>>;

/// The properties that the writer counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Properties {
    /// Entries of the table.
    pub entries: u64,
    /// Bytes of keys, trailers included.
    pub raw_key_size: u64,
    /// Bytes of values.
    pub raw_value_size: u64,
    /// Bytes of data blocks as they are stored.
    pub data_size: u64,
    /// Data blocks.
    pub data_blocks: u64,
    /// Bytes of index blocks before compression.
    pub index_size: u64,
    /// Index partitions; 0 where one block is the whole index.
    pub index_partitions: u64,
    /// Bytes of the index's top level before compression.
    pub top_level_index_size: u64,
}

impl Properties {
    /// Encodes the block, without its trailer; Pebble never compresses it.
    pub fn encode<T>(&self, user: &UserProperties, seal: impl FnOnce(&[u8]) -> T) -> T {
        let mut all: BTreeMap<&[u8], Vec<u8>> = BTreeMap::new();
        for (name, value) in user {
            all.insert(name.as_bytes(), value.clone());
        }
        let fixed: [(&str, &[u8]); 11] = [
            ("block.based.table.prefix.filtering", b"0"),
            ("block.based.table.whole.key.filtering", b"0"),
            ("comparator", b"leveldb.BytewiseComparator"),
            ("compression", b"Snappy"),
            ("compression_options", COMPRESSION_OPTIONS),
            ("external_sst_file.global_seqno", &[0; 8]),
            ("external_sst_file.version", &[2, 0, 0, 0]),
            ("merge.operator", b"pebble.concatenate"),
            ("prefix.extractor.name", b"nullptr"),
            ("property.collectors", b"[static]"),
            ("block.based.table.index.type", self.index_type()),
        ];
        let mut counts = vec![
            // No column family.
            ("column.family.id", (1 << 31) - 1),
            ("creation.time", 0),
            ("data.size", self.data_size),
            ("deleted.keys", 0),
            ("filter.size", 0),
            ("fixed.key.length", 0),
            ("format.version", 0),
            ("index.key.is.user.key", 0),
            ("index.size", self.index_size),
            ("index.value.is.delta.encoded", 0),
            ("merge.operands", 0),
            ("num.data.blocks", self.data_blocks),
            ("num.entries", self.entries),
            ("num.range-deletions", 0),
            ("oldest.key.time", 0),
            ("raw.key.size", self.raw_key_size),
            ("raw.value.size", self.raw_value_size),
        ];
        if self.index_partitions > 0 {
            counts.push(("index.partitions", self.index_partitions));
            counts.push(("top-level.index.size", self.top_level_index_size));
        }
        let mut named: Vec<(String, Vec<u8>)> = Vec::with_capacity(fixed.len() + counts.len());
        named.extend(
            fixed
                .iter()
                .map(|(name, value)| (format!("rocksdb.{name}"), value.to_vec())),
        );
        for (name, count) in counts {
            let mut value = Vec::with_capacity(4);
            put_uvarint(&mut value, count);
            named.push((format!("rocksdb.{name}"), value));
        }
        for (name, value) in &named {
            all.insert(name.as_bytes(), value.clone());
        }
        let mut block = BlockWriter::new(NEVER);
        for (name, value) in all {
            block.add(name, &value);
        }
        block.finish(seal)
    }

    /// 0 for one index block, 2 for partitions below a top level.
    fn index_type(&self) -> &'static [u8] {
        if self.index_partitions > 0 {
            &[2, 0, 0, 0]
        } else {
            &[0; 4]
        }
    }
}

/// Decodes a properties block. An error if the prefix-compressed names expand to far more than the block.
pub fn decode(block: Bytes) -> Result<BTreeMap<Vec<u8>, Bytes>> {
    let most = NAMES_ROOM.saturating_add(4 * block.len());
    let mut cursor = BlockCursor::new(block)?;
    let mut found = BTreeMap::new();
    let mut names = 0usize;
    while cursor.advance()? {
        names = names.saturating_add(cursor.stored_key().len());
        if names > most {
            return Err(GravelerError::corrupt(
                "properties",
                format!("expected names of at most {most} bytes in all, found more"),
            ));
        }
        found.insert(cursor.stored_key().to_vec(), cursor.value_bytes());
    }
    Ok(found)
}

/// How many partitions the index has; 0 where it is one block.
pub fn has_partitions(properties: &BTreeMap<Vec<u8>, Bytes>) -> bool {
    let index_type = properties.get(b"rocksdb.block.based.table.index.type".as_slice());
    index_type
        .and_then(|value| value.first())
        .is_some_and(|kind| *kind == 2)
}

/// A numeric property, in any of its stored forms.
pub fn number(properties: &BTreeMap<Vec<u8>, Bytes>, name: &str) -> Option<u64> {
    let value = properties.get(name.as_bytes())?;
    Some(uvarint(value)?.0)
}
