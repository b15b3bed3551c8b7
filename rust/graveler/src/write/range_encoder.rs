//! Encodes sorted records into ranges, which end where the split rule says.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::open_range::{EncodedTable, OpenTable};
use super::split_rule::{KeyHash, SplitRule};
use crate::error::Result;
use crate::sstable::block::recompressed;
use crate::sstable::shared_prefix;

/// Whether stored blocks of a table may be reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compressor {
    /// It is unknown which compressor wrote them.
    Unknown,
    /// One block, compressed again, gave the same bytes.
    Ours,
    /// It gave other bytes: blocks are read and never reused.
    Another,
}

/// Encodes records into tables.
#[derive(Debug)]
pub(super) struct RangeEncoder {
    rule: SplitRule,
    properties: Arc<BTreeMap<String, String>>,
    open: Option<Box<OpenTable>>,
    last_key: Vec<u8>,
    hash: KeyHash,
    tables: Vec<EncodedTable>,
}

impl RangeEncoder {
    /// An encoder that continues an open range, if there is one.
    pub(super) fn new(
        rule: SplitRule,
        properties: Arc<BTreeMap<String, String>>,
        open: Option<Box<OpenTable>>,
    ) -> Self {
        RangeEncoder {
            rule,
            properties,
            last_key: open.as_ref().map_or(Vec::new(), |open| open.last_key().to_vec()),
            // The prefix hashes of the last key are unknown, so the next key is hashed from its start.
            hash: KeyHash::new(),
            open,
            tables: Vec::new(),
        }
    }

    /// Appends a record.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let shared = shared_prefix(key, &self.last_key);
        let hash = self.hash.of(key, shared);
        let table = self
            .open
            .get_or_insert_with(|| Box::new(OpenTable::new("ranges", &self.properties)));
        let size = table.add_after(key, shared, value)?;
        if self.rule.breaks_at(hash, size) {
            self.close();
        }
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(key.get(shared..).unwrap_or_default());
        Ok(())
    }

    /// Tells the encoder that a block of another table was read to its end: if the open block is the same, the stored block is reused.
    pub(super) fn reached_end_of(&mut self, block: &[u8], stored: &Bytes, by: &mut Compressor) {
        let Some(table) = &mut self.open else { return };
        if *by == Compressor::Unknown {
            *by = match recompressed(block) == stored.as_ref() {
                true => Compressor::Ours,
                false => Compressor::Another,
            };
        }
        if *by == Compressor::Ours {
            table.reached_end_of(block, stored);
        }
    }

    /// Ends the open range, if there is one.
    pub(super) fn close(&mut self) {
        self.tables.extend(self.open.take().map(|table| table.finish()));
    }

    /// The finished ranges, and the open one.
    pub(super) fn finish(self) -> (Vec<EncodedTable>, Option<Box<OpenTable>>) {
        (self.tables, self.open)
    }
}
