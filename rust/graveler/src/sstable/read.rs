//! Decodes a table: its end first, then only the necessary blocks.
//!
//! This module does no IO: [`crate::storage`] fetches the bytes.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::block::BLOCK_TRAILER_LEN;
use super::block_cursor::BlockCursor;
use super::footer::{Footer, Handle};
use super::properties::{self, PROPERTIES};
use super::{block, user_key};
use crate::error::{GravelerError, Result};

/// The decoded end of a table.
#[derive(Debug, Clone)]
pub struct TableEnd {
    /// The index, or the top level of it, uncompressed.
    pub index: Bytes,
    /// Whether the index's entries are partitions of it rather than data blocks.
    pub has_partitions: bool,
    /// Names and values.
    pub properties: BTreeMap<Vec<u8>, Bytes>,
}

/// A piece of a file: bytes from an offset on.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Where they start.
    pub offset: u64,
    /// The bytes.
    pub bytes: Bytes,
}

impl Piece {
    /// A stored block, type and checksum included, if the piece holds all of it.
    pub fn stored(&self, handle: Handle) -> Option<Bytes> {
        let start = usize::try_from(handle.offset.checked_sub(self.offset)?).ok()?;
        let length = usize::try_from(handle.length).ok()?.checked_add(BLOCK_TRAILER_LEN)?;
        let end = start.checked_add(length)?;
        (end <= self.bytes.len()).then(|| self.bytes.slice(start..end))
    }

    /// A block, opened.
    pub fn block(&self, handle: Handle) -> Result<Option<Bytes>> {
        self.stored(handle)
            .map(|stored| at(handle, block::open(&stored)))
            .transpose()
    }
}

/// The byte range of a stored block, type and checksum included; an error if it is beyond the file.
pub fn stored_range(handle: Handle, file_size: u64) -> Result<std::ops::Range<u64>> {
    let end = handle
        .offset
        .checked_add(handle.length)
        .and_then(|end| end.checked_add(BLOCK_TRAILER_LEN as u64));
    match end {
        Some(end) if end <= file_size => Ok(handle.offset..end),
        _ => Err(GravelerError::corrupt(
            "index",
            format!("expected a block within the {file_size} bytes of the file, found {handle:?}"),
        )),
    }
}

fn at<T>(handle: Handle, result: Result<T>) -> Result<T> {
    result.map_err(|error| error.in_file(&format!("block at byte {}", handle.offset)))
}

/// The result of decoding a table's end.
#[derive(Debug)]
pub enum End {
    /// The piece was sufficient.
    Known(TableEnd),
    /// More is needed: everything from this byte on.
    StartsAt(u64),
}

/// Decodes the end of a table of `file_size` bytes from its last bytes.
pub fn decode_end(tail: &Piece, file_size: u64) -> Result<End> {
    let footer = Footer::decode(&tail.bytes, file_size)?;
    stored_range(footer.metaindex, file_size)?;
    stored_range(footer.index, file_size)?;
    let Some(metaindex) = tail.block(footer.metaindex)? else {
        return Ok(End::StartsAt(footer.metaindex.offset.min(footer.index.offset)));
    };
    let handle = properties_handle(metaindex)?;
    stored_range(handle, file_size)?;
    let (Some(index), Some(named)) = (tail.block(footer.index)?, tail.block(handle)?) else {
        return Ok(End::StartsAt(footer.index.offset.min(handle.offset)));
    };
    let properties = properties::decode(named)?;
    check(&properties)?;
    Ok(End::Known(TableEnd {
        index,
        has_partitions: properties::has_partitions(&properties),
        properties,
    }))
}

fn properties_handle(metaindex: Bytes) -> Result<Handle> {
    let mut cursor = BlockCursor::new(metaindex)?;
    while cursor.advance()? {
        if cursor.stored_key() == PROPERTIES.as_bytes() {
            return decode_handle(cursor.value());
        }
    }
    Err(GravelerError::corrupt(
        "metaindex",
        format!("expected an entry {PROPERTIES:?}, found none"),
    ))
}

/// Refuses tables with another key order, or with several values per key.
fn check(properties: &BTreeMap<Vec<u8>, Bytes>) -> Result<()> {
    let comparator = properties.get(b"rocksdb.comparator".as_slice());
    if let Some(name) = comparator.filter(|name| name.as_ref() != b"leveldb.BytewiseComparator") {
        return Err(GravelerError::unsupported(
            "properties",
            format!(
                "expected the comparator leveldb.BytewiseComparator, found {:?}",
                String::from_utf8_lossy(name)
            ),
        ));
    }
    for name in [
        "rocksdb.deleted.keys",
        "rocksdb.num.range-deletions",
        "rocksdb.merge.operands",
    ] {
        if properties::number(properties, name).is_some_and(|count| count > 0) {
            return Err(GravelerError::unsupported(
                "properties",
                format!("expected a table of plain values, found {name} above 0"),
            ));
        }
    }
    Ok(())
}

/// Decodes the handle of an index entry.
pub fn decode_handle(value: &[u8]) -> Result<Handle> {
    let found = Handle::decode(value).map(|(handle, _)| handle);
    found.ok_or_else(|| GravelerError::corrupt("index", "expected an offset and a length, found fewer bytes"))
}

/// Checks that blocks lie one after the other in the order of their keys, so that a corrupt index cannot make a block be read twice.
#[derive(Debug, Default)]
pub(crate) struct InOrder {
    /// Where the last block ended.
    end: u64,
}

impl InOrder {
    /// Checks the next block.
    pub(crate) fn check(&mut self, handle: Handle) -> Result<()> {
        if handle.offset < self.end {
            return Err(GravelerError::corrupt(
                "index",
                format!(
                    "expected blocks that lie in the order of the index, found one at byte {} before the last one's end at {}",
                    handle.offset, self.end
                ),
            ));
        }
        let length = handle.length.saturating_add(BLOCK_TRAILER_LEN as u64);
        self.end = handle.offset.saturating_add(length);
        Ok(())
    }
}

/// Iterates over an index block: the blocks below it, in the order of their keys.
#[derive(Debug, Default)]
pub struct IndexCursor(BlockCursor);

impl IndexCursor {
    /// Before the first.
    pub fn new(index: Bytes) -> Result<Self> {
        Ok(IndexCursor(BlockCursor::new(index)?))
    }

    /// The next block.
    pub fn advance(&mut self) -> Result<Option<Handle>> {
        if self.0.advance()? {
            decode_handle(self.0.value()).map(Some)
        } else {
            Ok(None)
        }
    }

    /// The last path that the current block may have.
    pub fn key(&self) -> Result<&[u8]> {
        self.0.key()
    }

    /// The next block whose keys may reach `key`.
    pub fn advance_to(&mut self, key: &[u8]) -> Result<Option<Handle>> {
        // A separator sorts before all keys of the same user key, which are therefore in a later block, unless the separator is a real key.
        let reached = |stored: &[u8]| match user_key(stored) {
            Some(user) if user == key => !stored.ends_with(&[0xff; 7]),
            Some(user) => user > key,
            None => false,
        };
        if self.0.advance_to(reached)? {
            decode_handle(self.0.value()).map(Some)
        } else {
            Ok(None)
        }
    }
}
