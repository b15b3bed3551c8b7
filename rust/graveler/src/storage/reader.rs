//! An open table: its end is in memory, blocks are read as they are needed.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{StreamExt, TryStreamExt};

use super::cache::Part;
use super::Storage;
use crate::error::{GravelerError, Result};
use crate::folds::Boundaries;
use crate::id::TableId;
use crate::sstable::block;
use crate::sstable::footer::Handle;
use crate::sstable::properties::number;
use crate::sstable::read::{decode_end, stored_range, End, InOrder, Piece, TableEnd};

/// A larger index is read block by block only, in bytes.
const MOST_INDEX: u64 = 4 << 20;
/// The greatest gap between blocks that are coalesced into one read, in bytes.
const NEAR: u64 = 32 << 10;
/// Concurrent reads of one table.
const READS: usize = 16;

/// An opened table.
#[derive(Debug, Clone)]
pub struct TableReader {
    storage: Arc<Storage>,
    id: TableId,
    size: u64,
    tail: Piece,
    end: Arc<TableEnd>,
    /// Blocks that were read ahead, by their offsets.
    held: BTreeMap<u64, Bytes>,
    /// The path up to which blocks were read ahead.
    held_until: Vec<u8>,
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
                        held: BTreeMap::new(),
                        held_until: Vec::new(),
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

    /// The table's decoded end.
    pub fn end(&self) -> &TableEnd {
        &self.end
    }

    /// The path, for messages.
    pub fn path(&self) -> String {
        self.storage.path(&self.id)
    }

    /// The same table with all of its index in memory: one read from the end of the data blocks to the bytes that are known.
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

    /// A block, if it needs no read. Others are read with their neighbours by [`TableReader::read_run`].
    pub(super) fn known(&self, handle: Handle) -> Result<Option<Bytes>> {
        if let Some(block) = self.tail.block(handle).map_err(|error| error.in_file(&self.path()))? {
            return Ok(Some(block));
        }
        if let Some(block) = self.held.get(&handle.offset) {
            return Ok(Some(block.clone()));
        }
        Ok(match self.storage.cache.get(&self.id, Some(handle.offset)) {
            Some(Part::Block(bytes)) => Some(bytes),
            _ => None,
        })
    }

    /// Reads blocks ahead, concurrently; replaces those that were read ahead before.
    pub(crate) async fn hold(&mut self, boundaries: &Boundaries) -> Result<()> {
        self.held.clear();
        self.held_until.clone_from(&boundaries.until);
        let (mut missing, mut order) = (Vec::new(), InOrder::default());
        for handle in &boundaries.blocks {
            order.check(*handle).map_err(|error| error.in_file(&self.path()))?;
            if self.tail.stored(*handle).is_none() && self.known(*handle)?.is_none() {
                missing.push(*handle);
            }
        }
        // Blocks between them are not needed: only near ones are coalesced.
        let near = |left: &Handle, right: &Handle| {
            right.offset <= left.offset.saturating_add(left.length).saturating_add(NEAR)
        };
        let mut reads = Vec::new();
        for run in missing.chunk_by(near) {
            reads.push(self.read_blocks(run.to_vec()));
        }
        let found: Vec<_> = futures::stream::iter(reads)
            .buffer_unordered(READS)
            .try_collect()
            .await?;
        self.held.extend(found.into_iter().flatten());
        Ok(())
    }

    /// Reads blocks that lie near each other with one read; returns them with their offsets.
    async fn read_blocks(&self, run: Vec<Handle>) -> Result<Vec<(u64, Bytes)>> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return Ok(Vec::new());
        };
        let piece = self.read_run(*first, *last).await?;
        let path = self.path();
        let blocks = run.iter().map(|handle| {
            let block = piece.block(*handle).map_err(|error| error.in_file(&path))?;
            let block = block.ok_or_else(|| {
                GravelerError::corrupt(path.as_str(), format!("expected a block at byte {}", handle.offset))
            })?;
            let part = Part::Block(block.clone());
            self.storage.cache.put(&self.id, Some(handle.offset), part);
            Ok((handle.offset, block))
        });
        blocks.collect()
    }

    /// Whether the block that may hold a path was read ahead.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        key <= self.held_until.as_slice()
    }

    /// A block in its stored form, if no read is needed.
    pub(super) fn stored(&self, handle: Handle) -> Option<Bytes> {
        self.tail.stored(handle)
    }

    /// A block, from memory or by a read of its own.
    pub(crate) async fn block(&self, handle: Handle) -> Result<Bytes> {
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

    /// Reads the stored bytes from one block to a later one.
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
