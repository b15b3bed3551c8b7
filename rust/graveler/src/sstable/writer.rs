//! Writes one table, in memory, byte for byte as Pebble would.
//!
//! A range has at most some tens of megabytes, and its name is a hash that is known only at its end, so it is built in memory and then put.

use bytes::Bytes;

use super::block::{BlockSealer, BLOCK_TRAILER_LEN};
use super::block_writer::BlockWriter;
use super::footer::{Footer, Handle};
use super::index_key::{push_index_key, shared_prefix};
use super::properties::{Properties, UserProperties, PROPERTIES};
use super::{TRAILER, TRAILER_LEN};
use crate::error::{GravelerError, Result};

/// The target size of a block, in bytes before compression.
const BLOCK_SIZE: usize = 4096;
/// From this size on (nine tenths), an entry that would exceed the target starts a new block.
const BLOCK_THRESHOLD: usize = 3687;
/// Every 16th key of a data block is stored whole.
const RESTART_INTERVAL: usize = 16;
/// Pebble's estimate of an encoded handle's length.
const HANDLE_ESTIMATE: usize = 20;
/// The largest entry: block offsets have 32 bits, of which Pebble reserves some.
const MAX_ENTRY: usize = 1 << 27;

/// A finished partition of the index.
#[derive(Debug)]
struct Partition {
    entries: usize,
    last_key: Vec<u8>,
    block: Vec<u8>,
}

/// A table that is being written.
#[derive(Debug)]
pub struct TableWriter {
    out: Vec<u8>,
    data: BlockWriter,
    index: BlockWriter,
    partitions: Vec<Partition>,
    sealer: BlockSealer,
    /// Reused buffers for a key and a value of the index.
    scratch: (Vec<u8>, Vec<u8>),
    last_key: Vec<u8>,
    /// The stored form of the open data block, if another table has the same block.
    stored: Option<Bytes>,
    properties: Properties,
    /// Off in tests, which write tables as other writers may.
    #[cfg(test)]
    pub(super) compress: bool,
}

impl Default for TableWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl TableWriter {
    /// An empty table.
    pub fn new() -> Self {
        TableWriter {
            out: Vec::new(),
            data: BlockWriter::new(RESTART_INTERVAL),
            index: BlockWriter::new(1),
            partitions: Vec::new(),
            sealer: BlockSealer::default(),
            scratch: (Vec::new(), Vec::new()),
            last_key: Vec::new(),
            stored: None,
            properties: Properties::default(),
            #[cfg(test)]
            compress: true,
        }
    }

    /// Appends an entry, whose key must be after the last one's.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.add_after(key, shared_prefix(key, &self.last_key), value)
    }

    /// The same, where it is known how many bytes the key shares with the last one.
    #[inline]
    pub(crate) fn add_after(&mut self, key: &[u8], shared: usize, value: &[u8]) -> Result<()> {
        let mut shared = if self.properties.entries == 0 { 0 } else { shared };
        // The key is greater if its first differing byte is, or if the last key is its prefix.
        let rises = match (key.get(shared), self.last_key.get(shared)) {
            (Some(ours), Some(last)) => ours > last,
            (ours, None) => ours.is_some(),
            (None, Some(_)) => false,
        };
        if self.properties.entries > 0 && !rises {
            return Err(GravelerError::invalid(format!(
                "expected keys in strictly rising order, found {:?} after {:?}; sort them first",
                String::from_utf8_lossy(key),
                String::from_utf8_lossy(&self.last_key)
            )));
        }
        if key.len() > MAX_ENTRY || value.len() > MAX_ENTRY {
            return Err(GravelerError::invalid(format!(
                "expected keys and values of at most {MAX_ENTRY} bytes, found {} and {}",
                key.len(),
                value.len()
            )));
        }
        let key_len = key.len() + TRAILER_LEN;
        if self.data.ends_before(key_len, value.len(), BLOCK_SIZE, BLOCK_THRESHOLD) {
            self.end_data_block(Some(key));
        }
        let rest = key.get(shared..).unwrap_or_default();
        if shared == self.last_key.len() {
            // The trailer of the last key may equal the next bytes of a longer key.
            shared += shared_prefix(rest, &TRAILER);
        }
        self.data.append(key, shared, &TRAILER, value);
        self.stored = None;
        self.properties.entries += 1;
        self.properties.raw_key_size += key_len as u64;
        self.properties.raw_value_size += value.len() as u64;
        self.last_key.truncate(key.len() - rest.len());
        self.last_key.extend_from_slice(rest);
        Ok(())
    }

    /// Tells the writer that a block of another table was read to its end. If the open data block is the same, its stored form is reused
    /// without compressing it again.
    pub(crate) fn reached_end_of(&mut self, block: &[u8], stored: &Bytes) {
        if self.data.is(block) {
            self.stored = Some(stored.clone());
        }
    }

    /// The key of the last entry; empty before the first.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// How many entries there are.
    pub fn entries(&self) -> u64 {
        self.properties.entries
    }

    /// Pebble's estimate of the table's size so far: stored blocks, and the open data and index blocks uncompressed. The split rule uses
    /// it, and it is part of a metarange's id.
    pub fn estimated_size(&self) -> u64 {
        (self.out.len() + self.data.estimated_size() + self.index.estimated_size()) as u64
    }

    #[cfg(not(test))]
    fn compresses(&self) -> bool {
        true
    }

    #[cfg(test)]
    fn compresses(&self) -> bool {
        self.compress
    }

    fn end_data_block(&mut self, next: Option<&[u8]>) {
        let compress = self.compresses();
        let (key, value) = &mut self.scratch;
        key.clear();
        value.clear();
        if self.data.entries() == 0 {
            // A table without entries has an empty block, whose key has an invalid kind.
            key.extend_from_slice(&[0xff, 0, 0, 0, 0, 0, 0, 0]);
        } else {
            push_index_key(key, &self.last_key, next);
        }
        let offset = self.out.len() as u64;
        let length = match self.stored.take() {
            Some(stored) => {
                self.data.clear();
                self.out.extend_from_slice(&stored);
                stored.len().saturating_sub(BLOCK_TRAILER_LEN)
            }
            None => self
                .data
                .finish(|block| self.sealer.seal(block, compress, &mut self.out)),
        };
        let length = length as u64;
        Handle { offset, length }.encode_to(value);
        if self
            .index
            .ends_before(key.len(), HANDLE_ESTIMATE, BLOCK_SIZE, BLOCK_THRESHOLD)
        {
            self.partitions.push(finished(&mut self.index));
        }
        self.index.add(key, value);
    }

    /// Ends the table and returns its bytes.
    pub fn finish(mut self, user: &UserProperties) -> Vec<u8> {
        if self.data.entries() > 0 || self.index.entries() == 0 {
            self.end_data_block(None);
        }
        self.properties.data_size = self.out.len() as u64;
        let index = self.put_index();
        let (sealer, out) = (&mut self.sealer, &mut self.out);
        let mut put = |block: &[u8]| Handle {
            offset: out.len() as u64,
            length: sealer.seal(block, false, out) as u64,
        };
        let properties = self.properties.encode(user, &mut put);
        let mut value = Vec::new();
        properties.encode_to(&mut value);
        let mut metaindex = BlockWriter::new(1);
        metaindex.add(PROPERTIES.as_bytes(), &value);
        let metaindex = metaindex.finish(&mut put);
        Footer { metaindex, index }.encode_to(&mut self.out);
        self.out
    }

    fn put_index(&mut self) -> Handle {
        let (sealer, out) = (&mut self.sealer, &mut self.out);
        let mut put = |block: &[u8]| Handle {
            offset: out.len() as u64,
            length: sealer.seal(block, true, out) as u64,
        };
        if self.partitions.is_empty() {
            self.properties.index_size = (self.index.estimated_size() + BLOCK_TRAILER_LEN) as u64;
            self.properties.data_blocks = self.index.entries() as u64;
            return self.index.finish(put);
        }
        self.partitions.push(finished(&mut self.index));
        let mut top = BlockWriter::new(1);
        for partition in &self.partitions {
            self.properties.data_blocks += partition.entries as u64;
            self.properties.index_size += partition.block.len() as u64;
            let mut value = Vec::new();
            put(&partition.block).encode_to(&mut value);
            top.add(&partition.last_key, &value);
        }
        self.properties.index_partitions = self.partitions.len() as u64;
        self.properties.top_level_index_size = top.estimated_size() as u64;
        self.properties.index_size += self.properties.top_level_index_size + BLOCK_TRAILER_LEN as u64;
        top.finish(put)
    }
}

fn finished(index: &mut BlockWriter) -> Partition {
    Partition {
        entries: index.entries(),
        last_key: index.last_key().to_vec(),
        block: index.finish(<[u8]>::to_vec),
    }
}
