//! The bodies that fuzzers run: any bytes give records or an error.

use bytes::Bytes;

use crate::commit::{decode_ref, Commit};
use crate::entry::Entry;
use crate::metarange::RangeInfo;
use crate::sstable::read::{decode_end, End, IndexCursor, Piece};
use crate::sstable::BlockCursor;
use crate::value::Value;
use crate::{GravelerError, Result};

/// Reads all that may be a table, in memory; how many records it has.
pub fn read_table(file: Bytes) -> Result<u64> {
    let size = file.len() as u64;
    let file = Piece { offset: 0, bytes: file };
    let gone = || GravelerError::corrupt("table", "expected a block within the file");
    let End::Known(end) = decode_end(&file, size)? else {
        return Err(gone());
    };
    let mut records = 0;
    let mut top = IndexCursor::new(end.index)?;
    while let Some(handle) = top.advance()? {
        let block = file.block(handle)?.ok_or_else(gone)?;
        if !end.has_partitions {
            records += read_block(block)?;
            continue;
        }
        let mut partition = IndexCursor::new(block)?;
        while let Some(handle) = partition.advance()? {
            records += read_block(file.block(handle)?.ok_or_else(gone)?)?;
        }
    }
    Ok(records)
}

/// Reads one uncompressed block, and each of its records in all the ways that records are read.
pub fn read_block(block: Bytes) -> Result<u64> {
    let mut cursor = BlockCursor::new(block)?;
    let mut records = 0;
    while cursor.advance()? {
        records += 1;
        let Ok(key) = cursor.key() else { continue };
        // Whether or not one of them can read it.
        let _ = RangeInfo::decode(key, cursor.value());
        if let Ok(value) = Value::decode(cursor.value()) {
            read_message(value.data);
        }
    }
    Ok(records)
}

/// Reads a message in all the ways that messages are read.
pub fn read_message(data: &[u8]) {
    let _ = Entry::decode(data);
    let _ = Commit::decode(data);
    let _ = decode_ref(data);
    let _ = RangeInfo::decode_data(data);
}
