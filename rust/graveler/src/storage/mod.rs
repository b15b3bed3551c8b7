//! The tables of a repository by their ids, in a store, with caches.
//!
//! ```text
//! <repository>/_lakefs/<64 hex digits>      ranges and metaranges alike
//! ```

mod blocks;
mod cache;
mod cursor;
mod disk;
mod fetch;
mod reader;
mod run;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use esker_store::StoreRef;

use crate::error::Result;
use crate::id::TableId;
use crate::metarange::{Metarange, RangeInfo};
use crate::sstable::read::Piece;
use cache::{Cache, Part};
use disk::DiskCache;

pub(crate) use blocks::Blocks;
pub use cursor::TableCursor;
pub(crate) use disk::decode as cached_table;
pub use reader::TableReader;
pub(crate) use run::RunCursor;

/// The folder of tables, lakeFS's name.
pub const PREFIX: &str = "_lakefs/";
/// Bytes of a table's end that are read first: nearly always its whole index, or the top level of it.
const TAIL: u64 = 64 << 10;
/// The default size of the memory cache, in bytes.
pub const CACHE_BYTES: usize = 256 << 20;

/// The tables of one repository.
#[derive(Debug)]
pub struct Storage {
    store: StoreRef,
    prefix: String,
    cache: Cache,
    disk: Option<DiskCache>,
}

impl Storage {
    /// Tables under `prefix` in a store, with a memory cache of `cache_bytes`.
    pub fn new(store: StoreRef, prefix: &str, cache_bytes: usize) -> Arc<Self> {
        Self::with_disk(store, prefix, cache_bytes, None)
    }

    /// The same, with a disk cache of whole tables in a local folder of at most so many bytes.
    pub fn with_disk(store: StoreRef, prefix: &str, cache_bytes: usize, disk: Option<(&Path, u64)>) -> Arc<Self> {
        Arc::new(Storage {
            store,
            prefix: prefix.to_owned(),
            cache: Cache::new(cache_bytes),
            disk: disk.map(|(folder, bytes)| DiskCache::new(folder, bytes)),
        })
    }

    /// The store.
    pub fn store(&self) -> &StoreRef {
        &self.store
    }

    /// The path of a table's file.
    pub fn path(&self, id: &TableId) -> String {
        format!("{}{id}", self.prefix)
    }

    /// Puts a table. An existing one of the same id has the same content; it is put again to renew its time of modification.
    pub async fn put(&self, id: &TableId, bytes: Bytes) -> Result<()> {
        self.store.put(&self.path(id), bytes.clone()).await?;
        if let Some(disk) = &self.disk {
            disk.put(id, &bytes);
        }
        let whole = Part::Tail(Piece { offset: 0, bytes });
        self.cache.put(id, None, whole);
        Ok(())
    }

    /// Opens a table by its end: one read, or none if it is cached.
    pub async fn open(self: &Arc<Self>, id: &TableId) -> Result<TableReader> {
        if let Some(Part::Tail(piece)) = self.cache.get(id, None) {
            return TableReader::open(self.clone(), id, piece).await;
        }
        if let Some(piece) = self.on_disk(id) {
            return TableReader::open(self.clone(), id, piece).await;
        }
        let tail = self.store.get_tail(&self.path(id), TAIL).await?;
        let piece = Piece {
            offset: tail.size.saturating_sub(tail.bytes.len() as u64),
            bytes: tail.bytes,
        };
        self.cache.put(id, None, Part::Tail(piece.clone()));
        TableReader::open(self.clone(), id, piece).await
    }

    /// Opens a table's file of any name, for inspection.
    pub async fn open_file(self: &Arc<Self>, name: &str) -> Result<TableReader> {
        self.open(&TableId::of_file_name(name)).await
    }

    /// Opens a table that will be read from end to end: one read of all of it, or none if it is cached.
    pub async fn open_whole(self: &Arc<Self>, id: &TableId) -> Result<TableReader> {
        let piece = self.whole(id).await?;
        TableReader::open(self.clone(), id, piece).await
    }

    /// The data blocks of a table, after one read of all of it, or none if it is cached.
    pub(crate) async fn blocks(self: &Arc<Self>, id: &TableId) -> Result<Blocks> {
        let piece = self.whole(id).await?;
        let reader = TableReader::open(self.clone(), id, piece.clone()).await?;
        Blocks::new(&reader, piece)
    }

    async fn whole(&self, id: &TableId) -> Result<Piece> {
        match self.cache.get(id, None) {
            Some(Part::Tail(piece)) if piece.offset == 0 => Ok(piece),
            _ => match self.on_disk(id) {
                Some(piece) => Ok(piece),
                None => self.fetch(id).await,
            },
        }
    }

    fn on_disk(&self, id: &TableId) -> Option<Piece> {
        let bytes = self.disk.as_ref()?.get(id)?;
        let piece = Piece { offset: 0, bytes };
        self.cache.put(id, None, Part::Tail(piece.clone()));
        Some(piece)
    }

    async fn fetch(&self, id: &TableId) -> Result<Piece> {
        let bytes = self.store.get(&self.path(id)).await?;
        if let Some(disk) = &self.disk {
            disk.put(id, &bytes);
        }
        let piece = Piece { offset: 0, bytes };
        self.cache.put(id, None, Part::Tail(piece.clone()));
        Ok(piece)
    }

    /// Stored bytes of a table.
    async fn bytes(&self, id: &TableId, range: Range<u64>) -> Result<Bytes> {
        let mut found = self.store.get_ranges(&self.path(id), &[range]).await?;
        Ok(found.pop().unwrap_or_default())
    }

    /// A decoded metarange; `None` is the empty content of a repository's first commit.
    pub async fn metarange(self: &Arc<Self>, id: Option<&TableId>) -> Result<Arc<Metarange>> {
        let Some(id) = id else {
            return Ok(Arc::default());
        };
        if let Some(metarange) = self.cache.metarange(id) {
            return Ok(metarange);
        }
        let mut cursor = TableCursor::new(self.open_whole(id).await?)?;
        let mut ranges = Vec::new();
        while cursor.advance().await? {
            ranges
                .push(RangeInfo::decode(cursor.key()?, cursor.value()).map_err(|error| error.in_file(&self.path(id)))?);
        }
        let metarange = Metarange::new(Some(id.clone()), ranges).map_err(|error| error.in_file(&self.path(id)))?;
        let metarange = Arc::new(metarange);
        self.cache.put_metarange(id, metarange.clone());
        Ok(metarange)
    }

    /// The value at a key, if there is one: at most an end, an index block and a data block of the metarange and of one range.
    pub async fn get(self: &Arc<Self>, metarange: &TableId, key: &[u8]) -> Result<Option<Bytes>> {
        let range = match self.cache.metarange(metarange) {
            Some(known) => known.ranges().get(known.position(key)).cloned(),
            None => {
                let mut cursor = TableCursor::new(self.open(metarange).await?)?;
                match cursor.seek(key).await? {
                    true => Some(RangeInfo::decode(cursor.key()?, cursor.value())?),
                    false => None,
                }
            }
        };
        let Some(range) = range.filter(|range| range.covers(key)) else {
            return Ok(None);
        };
        let mut cursor = TableCursor::new(self.open(&range.id).await?)?;
        let found = cursor.seek(key).await? && cursor.key()? == key;
        Ok(found.then(|| cursor.value_bytes()))
    }
}
