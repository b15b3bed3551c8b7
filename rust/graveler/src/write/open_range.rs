//! A table that is being written, with the running hash that becomes its id.

use std::collections::BTreeMap;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::error::{GravelerError, Result};
use crate::id::TableId;
use crate::ident::Identity;
use crate::metarange::RangeInfo;
use crate::sstable::{shared_prefix, TableWriter, UserProperties};

/// Bytes that are hashed at a time.
const HASHED_AT_ONCE: usize = 16 << 10;

/// A table, ready to be put under its id.
#[derive(Debug, Clone)]
pub struct EncodedTable {
    /// Its record for a metarange.
    pub info: RangeInfo,
    /// The file.
    pub bytes: Vec<u8>,
}

/// An open table, to which records are appended.
#[derive(Debug)]
pub(crate) struct OpenTable {
    table: TableWriter,
    hash: Sha256,
    unhashed: Vec<u8>,
    min_key: Vec<u8>,
    properties: BTreeMap<String, String>,
}

impl OpenTable {
    /// An empty table of a type, `ranges` or `metaranges`, with further user properties.
    pub(crate) fn new(table_type: &str, properties: &BTreeMap<String, String>) -> Self {
        let mut properties = properties.clone();
        properties.insert("type".into(), table_type.into());
        OpenTable {
            table: TableWriter::new(),
            hash: Sha256::new(),
            unhashed: Vec::with_capacity(HASHED_AT_ONCE + 1024),
            min_key: Vec::new(),
            properties,
        }
    }

    /// Appends a record; returns the table's estimated size.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<u64> {
        self.add_after(key, shared_prefix(key, self.table.last_key()), value)
    }

    /// The same, where it is known how many bytes the key shares with the last one.
    #[inline]
    pub(crate) fn add_after(&mut self, key: &[u8], shared: usize, value: &[u8]) -> Result<u64> {
        self.table.add_after(key, shared, value)?;
        if self.table.entries() == 1 {
            self.min_key = key.to_vec();
        }
        for part in [key, value] {
            push_decimal(&mut self.unhashed, part.len());
            self.unhashed.extend_from_slice(part);
            self.unhashed.push(b'|');
        }
        if self.unhashed.len() >= HASHED_AT_ONCE {
            self.hash.update(&self.unhashed);
            self.unhashed.clear();
        }
        Ok(self.table.estimated_size())
    }

    /// The key of the last record; empty before the first.
    pub(crate) fn last_key(&self) -> &[u8] {
        self.table.last_key()
    }

    /// Tells the table that a block of another table was read to its end, so that an equal block is reused without compressing it again.
    pub(crate) fn reached_end_of(&mut self, block: &[u8], stored: &Bytes) {
        self.table.reached_end_of(block, stored);
    }

    /// Ends the table.
    pub(crate) fn finish(mut self) -> EncodedTable {
        let mut said = Identity::new();
        said.map(&self.properties);
        self.hash.update(&self.unhashed);
        self.hash.update(said.as_bytes());
        let hash: [u8; 32] = self.hash.finalize().into();
        let info = RangeInfo {
            id: TableId::of_hash(&hash),
            estimated_size: self.table.estimated_size(),
            count: self.table.entries(),
            min_key: self.min_key,
            max_key: self.table.last_key().to_vec(),
        };
        let mut user: UserProperties = UserProperties::new();
        for (name, value) in self.properties {
            user.insert(name, value.into_bytes());
        }
        user.insert("min_key".into(), info.min_key.clone());
        user.insert("max_key".into(), info.max_key.clone());
        user.insert("count".into(), info.count.to_string().into_bytes());
        user.insert(
            "estimated_size_bytes".into(),
            info.estimated_size.to_string().into_bytes(),
        );
        EncodedTable {
            bytes: self.table.finish(&user),
            info,
        }
    }
}

/// Appends the decimal digits of a length.
#[inline]
fn push_decimal(buffer: &mut Vec<u8>, mut value: usize) {
    let digit = |value: usize| b'0' + u8::try_from(value % 10).unwrap_or(0);
    match value {
        0..10 => return buffer.push(digit(value)),
        10..100 => return buffer.extend_from_slice(&[digit(value / 10), digit(value)]),
        100..1000 => return buffer.extend_from_slice(&[digit(value / 100), digit(value / 10), digit(value)]),
        _ => {}
    }
    let start = buffer.len();
    loop {
        buffer.push(digit(value));
        value /= 10;
        if value == 0 {
            break;
        }
    }
    if let Some(digits) = buffer.get_mut(start..) {
        digits.reverse();
    }
}

/// One table of all records, whatever its size: for dumps, metaranges, and recomputing ids.
pub fn table_of_records<'a>(
    table_type: &str,
    properties: &BTreeMap<String, String>,
    records: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<EncodedTable> {
    let mut open = OpenTable::new(table_type, properties);
    for (key, value) in records {
        open.add(key, value)?;
    }
    Ok(open.finish())
}

impl From<EncodedTable> for RangeInfo {
    fn from(table: EncodedTable) -> Self {
        table.info
    }
}

/// Refuses a key that is not after the last one.
pub(super) fn check_key(last: &[u8], key: &[u8], any: bool) -> Result<()> {
    if any && key <= last {
        return Err(GravelerError::invalid(format!(
            "expected keys in strictly rising order, found {:?} after {:?}",
            String::from_utf8_lossy(key),
            String::from_utf8_lossy(last)
        )));
    }
    Ok(())
}
