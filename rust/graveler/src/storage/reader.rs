//! One table, of which its end is known and blocks are read as they are needed.

use std::sync::Arc;

use bytes::Bytes;

use super::cache::Part;
use super::Storage;
use crate::error::{GravelerError, Result};
use crate::id::TableId;
use crate::sstable::block;
use crate::sstable::footer::Handle;
use crate::sstable::properties::number;
use crate::sstable::read::{decode_end, stored_range, End, Piece, TableEnd};

/// More than this is read of an index only block by block, in bytes.
const MOST_INDEX: u64 = 4 << 20;

/// An opened table.
#[derive(Debug, Clone)]
pub struct TableReader {
    storage: Arc<Storage>,
    id: TableId,
    size: u64,
    tail: Piece,
    end: Arc<TableEnd>,
}

impl TableReader {
    /// Opens a table whose last bytes are known, reading more of them if they are not enough.
    pub(super) async fn open(storage: Arc<Storage>, id: &TableId, tail: Piece) -> Result<Self> {
        let path = storage.path(id);
        let size = tail.offset + tail.bytes.len() as u64;
        let mut tail = tail;
        for _ in 0..3 {
            match decode_end(&tail, size).map_err(|error| error.in_file(&path))? {
                End::Known(end) => {
                    return Ok(TableReader {
                        storage,
                        id: id.clone(),
                        size,
                        tail,
                        end: Arc::new(end),
                    })
                }
                End::StartsAt(offset) => {
                    let bytes = storage.bytes(id, offset..size).await?;
                    tail = Piece { offset, bytes };
                    storage.cache.put(id, None, Part::Tail(tail.clone()));
                }
            }
        }
        Err(GravelerError::corrupt(
            path,
            "expected the index and the properties near the end, found them nowhere",
        ))
    }

    /// The table's name.
    pub fn id(&self) -> &TableId {
        &self.id
    }

    /// The file's size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What the end tells.
    pub fn end(&self) -> &TableEnd {
        &self.end
    }

    /// The path, for messages.
    pub fn path(&self) -> String {
        self.storage.path(&self.id)
    }

    /// The same table with all of its index in memory: what lies between the data blocks and what is known is one read.
    pub(crate) async fn with_index(mut self) -> Result<Self> {
        let start = number(&self.end.properties, "rocksdb.data.size").filter(|start| *start < self.tail.offset);
        let Some(start) = start.filter(|start| self.end.has_partitions && self.tail.offset - start <= MOST_INDEX)
        else {
            return Ok(self);
        };
        let missing = self.storage.bytes(&self.id, start..self.tail.offset).await?;
        let bytes = Bytes::from([missing.as_ref(), self.tail.bytes.as_ref()].concat());
        self.tail = Piece { offset: start, bytes };
        self.storage.cache.put(&self.id, None, Part::Tail(self.tail.clone()));
        Ok(self)
    }

    /// Whether a block needs no read. What is not kept is then read with its neighbours by [`TableReader::read_run`].
    pub(super) fn known(&self, handle: Handle) -> Result<Option<Bytes>> {
        if let Some(block) = self.tail.block(handle).map_err(|error| error.in_file(&self.path()))? {
            return Ok(Some(block));
        }
        Ok(match self.storage.cache.get(&self.id, Some(handle.offset)) {
            Some(Part::Block(bytes)) => Some(bytes),
            _ => None,
        })
    }

    /// A block as it is stored, if no read is needed.
    pub(super) fn stored(&self, handle: Handle) -> Option<Bytes> {
        self.tail.stored(handle)
    }

    /// A block, from memory or by a read of its own.
    pub(super) async fn block(&self, handle: Handle) -> Result<Bytes> {
        if let Some(block) = self.known(handle)? {
            return Ok(block);
        }
        let stored = self.storage.bytes(&self.id, stored_range(handle, self.size)?).await?;
        let block = block::open(&stored).map_err(|error| error.in_file(&self.path()))?;
        self.storage
            .cache
            .put(&self.id, Some(handle.offset), Part::Block(block.clone()));
        Ok(block)
    }

    /// The stored bytes from one block to another that lies after it.
    pub(super) async fn read_run(&self, first: Handle, last: Handle) -> Result<Piece> {
        let start = stored_range(first, self.size)?.start;
        let end = stored_range(last, self.size)?.end;
        let end = end
            .max(stored_range(first, self.size)?.end)
            .saturating_add(block::BLOCK_TRAILER_LEN as u64);
        let bytes = self.storage.bytes(&self.id, start..end.min(self.size)).await?;
        Ok(Piece { offset: start, bytes })
    }
}
