//! Iterates over the records of a table, in the order of their keys.

use std::collections::VecDeque;

use bytes::Bytes;

use super::reader::TableReader;
use crate::error::{GravelerError, Result};
use crate::sstable::footer::Handle;
use crate::sstable::read::{InOrder, IndexCursor, Piece};
use crate::sstable::BlockCursor;

/// The most bytes that a scan reads ahead. It starts with one block and doubles, so that a look-up of one record reads one block.
const MOST_AHEAD: u64 = 1 << 20;

/// A cursor over a table: before the first record, at one, or after the last.
#[derive(Debug)]
pub struct TableCursor {
    reader: TableReader,
    /// The index, or the top level of it.
    top: IndexCursor,
    /// Data blocks that come next.
    blocks: VecDeque<Handle>,
    ahead: Option<Piece>,
    ahead_size: u64,
    block: BlockCursor,
    data_order: InOrder,
    index_order: InOrder,
}

impl TableCursor {
    /// A cursor before the first record.
    pub fn new(reader: TableReader) -> Result<Self> {
        let top = IndexCursor::new(reader.end().index.clone())?;
        Ok(TableCursor {
            reader,
            top,
            blocks: VecDeque::new(),
            ahead: None,
            ahead_size: 1,
            block: BlockCursor::default(),
            data_order: InOrder::default(),
            index_order: InOrder::default(),
        })
    }

    /// The table.
    pub fn reader(&self) -> &TableReader {
        &self.reader
    }

    /// The table, to read ahead of it.
    pub(crate) fn reader_mut(&mut self) -> &mut TableReader {
        &mut self.reader
    }

    /// To the next record; false after the last.
    #[inline]
    pub async fn advance(&mut self) -> Result<bool> {
        loop {
            match self.block.advance() {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => return Err(error.in_file(&self.reader.path())),
            }
            if !self.next_block().await? {
                return Ok(false);
            }
        }
    }

    /// To the first record whose key is not before `key`; false if there is none.
    pub async fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.top = IndexCursor::new(self.reader.end().index.clone())?;
        self.blocks.clear();
        self.block = BlockCursor::default();
        // The records after it may not be needed: reading ahead starts again.
        self.ahead_size = 1;
        self.data_order = InOrder::default();
        self.index_order = InOrder::default();
        let Some(first) = self.top.advance_to(key)? else {
            return Ok(false);
        };
        if self.reader.end().has_partitions {
            self.index_order.check(first)?;
            let mut partition = IndexCursor::new(self.reader.block(first).await?)?;
            self.blocks.extend(partition.advance_to(key)?);
            self.take_all(&mut partition)?;
        } else {
            self.blocks.push_back(first);
        }
        while self.advance().await? {
            if self.key()? >= key {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// To the first record in the rest of the current block whose key is not before `key`; false if there is none.
    pub(crate) fn seek_near(&mut self, key: &[u8]) -> Result<bool> {
        while self
            .block
            .advance()
            .map_err(|error| error.in_file(&self.reader.path()))?
        {
            if self.key()? >= key {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn in_file<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.in_file(&self.reader.path()))
    }

    fn take_all(&mut self, index: &mut IndexCursor) -> Result<()> {
        while let Some(handle) = index.advance()? {
            self.blocks.push_back(handle);
        }
        Ok(())
    }

    /// If both cursors are at the last record of a block, skips the following blocks whose stored bytes are the same on both sides.
    pub(crate) async fn skip_same(&mut self, other: &mut TableCursor) -> Result<()> {
        while self.block.is_at_end() && other.block.is_at_end() {
            let (ours, theirs) = (self.next_stored().await?, other.next_stored().await?);
            if ours.is_none() || ours != theirs {
                break;
            }
            self.pass()?;
            other.pass()?;
        }
        Ok(())
    }

    /// The next block in its stored form, if it is in memory.
    async fn next_stored(&mut self) -> Result<Option<Bytes>> {
        if !self.find_blocks().await? {
            return Ok(None);
        }
        Ok(self.blocks.front().and_then(|handle| self.reader.stored(*handle)))
    }

    fn pass(&mut self) -> Result<()> {
        match self.blocks.pop_front() {
            Some(handle) => {
                let checked = self.data_order.check(handle);
                self.in_file(checked)
            }
            None => Ok(()),
        }
    }

    /// Makes sure that the next block is known; false if there is none.
    async fn find_blocks(&mut self) -> Result<bool> {
        while self.blocks.is_empty() {
            let Some(handle) = self.top.advance()? else {
                return Ok(false);
            };
            if self.reader.end().has_partitions {
                let checked = self.index_order.check(handle);
                self.in_file(checked)?;
                let mut partition = IndexCursor::new(self.reader.block(handle).await?)?;
                self.take_all(&mut partition)?;
            } else {
                self.blocks.push_back(handle);
            }
        }
        Ok(true)
    }

    async fn next_block(&mut self) -> Result<bool> {
        if !self.find_blocks().await? {
            return Ok(false);
        }
        let Some(handle) = self.blocks.pop_front() else {
            return Ok(false);
        };
        let checked = self.data_order.check(handle);
        self.in_file(checked)?;
        let block = self.data_block(handle).await?;
        self.block = BlockCursor::new(block).map_err(|error| error.in_file(&self.reader.path()))?;
        Ok(true)
    }

    async fn data_block(&mut self, handle: Handle) -> Result<Bytes> {
        if let Some(block) = self.reader.known(handle)? {
            return Ok(block);
        }
        let path = self.reader.path();
        if let Some(ahead) = &self.ahead {
            if let Some(block) = ahead.block(handle).map_err(|error| error.in_file(&path))? {
                return Ok(block);
            }
        }
        if self.ahead_size == 1 {
            self.ahead_size = 16 << 10;
            return self.reader.block(handle).await;
        }
        let end = handle.offset.saturating_add(self.ahead_size);
        let last = self
            .blocks
            .iter()
            .take_while(|next| next.offset >= handle.offset && next.offset < end)
            .last();
        let piece = self.reader.read_run(handle, last.copied().unwrap_or(handle)).await?;
        self.ahead_size = (2 * self.ahead_size).min(MOST_AHEAD);
        let block = piece.block(handle).map_err(|error| error.in_file(&path))?;
        self.ahead = Some(piece);
        block.ok_or_else(|| GravelerError::corrupt(path, format!("expected a block at byte {}", handle.offset)))
    }

    /// The record's key.
    #[inline]
    pub fn key(&self) -> Result<&[u8]> {
        self.block.key()
    }

    /// The record's framed value.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.block.value()
    }

    /// The record's framed value, sharing memory with the block.
    pub fn value_bytes(&self) -> Bytes {
        self.block.value_bytes()
    }
}
