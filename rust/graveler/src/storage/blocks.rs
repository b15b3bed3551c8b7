//! Iterates over the data blocks of a table that is in memory as a whole.

use bytes::Bytes;

use super::reader::TableReader;
use crate::error::{GravelerError, Result};
use crate::sstable::block;
use crate::sstable::footer::Handle;
use crate::sstable::read::{InOrder, IndexCursor, Piece};

/// A cursor between two blocks.
#[derive(Debug)]
pub(crate) struct Blocks {
    table: Piece,
    path: String,
    top: IndexCursor,
    /// The current partition of the index, if it has partitions.
    partition: Option<IndexCursor>,
    has_partitions: bool,
    /// A block that was found and not returned yet.
    found: Option<Handle>,
    data_order: InOrder,
    index_order: InOrder,
}

impl Blocks {
    pub(super) fn new(reader: &TableReader, table: Piece) -> Result<Self> {
        let end = reader.end();
        Ok(Blocks {
            table,
            path: reader.path(),
            top: IndexCursor::new(end.index.clone())?,
            partition: None,
            has_partitions: end.has_partitions,
            found: None,
            data_order: InOrder::default(),
            index_order: InOrder::default(),
        })
    }

    /// An error about a block's content, with the table's path.
    pub(crate) fn in_file(&self, error: GravelerError) -> GravelerError {
        error.in_file(&self.path)
    }

    /// To the first block whose keys may reach `key`.
    pub(crate) fn skip_to(&mut self, key: &[u8]) -> Result<()> {
        if key.is_empty() {
            return Ok(());
        }
        let Some(first) = self.top.advance_to(key)? else {
            return Ok(());
        };
        self.found = Some(first);
        if self.has_partitions {
            self.index_order.check(first)?;
            let mut partition = IndexCursor::new(self.open(first)?.0)?;
            self.found = partition.advance_to(key)?;
            self.partition = Some(partition);
        }
        Ok(())
    }

    /// The next block, opened and in its stored form.
    pub(crate) fn next(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        let handle = match self.found.take() {
            Some(found) => Some(found),
            None => self.next_handle().map_err(|error| self.in_file(error))?,
        };
        let Some(handle) = handle else { return Ok(None) };
        self.data_order.check(handle).map_err(|error| self.in_file(error))?;
        self.open(handle).map(Some)
    }

    fn next_handle(&mut self) -> Result<Option<Handle>> {
        if !self.has_partitions {
            return self.top.advance();
        }
        loop {
            if let Some(partition) = &mut self.partition {
                if let Some(handle) = partition.advance()? {
                    return Ok(Some(handle));
                }
            }
            let Some(handle) = self.top.advance()? else {
                return Ok(None);
            };
            self.index_order.check(handle)?;
            self.partition = Some(IndexCursor::new(self.open(handle)?.0)?);
        }
    }

    fn open(&self, handle: Handle) -> Result<(Bytes, Bytes)> {
        let stored = self.table.stored(handle).ok_or_else(|| {
            let size = self.table.bytes.len();
            GravelerError::corrupt(
                self.path.as_str(),
                format!("expected a block within the {size} bytes of the file, found {handle:?}"),
            )
        })?;
        let block = block::open(&stored)
            .map_err(|error| self.in_file(error.in_file(&format!("block at byte {}", handle.offset))))?;
        Ok((block, stored))
    }
}
