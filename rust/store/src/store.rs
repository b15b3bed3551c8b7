//! The trait [`Store`]: everything that tables need from the place that holds their bytes.
//!
//! A [`Store`] is a flat space of objects under one root: a folder, a bucket prefix, memory, or a branch of a repository.
//! Paths are relative to that root, `/`-separated, without a leading slash. A path's object may be replaced at any time: a cache must be
//! keyed by an object's identity, never by its path.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};

use crate::error::{Result, StoreError};
use crate::path::check_folder;
use crate::stats::StatsCounters;

/// A shared handle to a store.
pub type StoreRef = Arc<dyn Store>;

/// An object's metadata, as a listing or a head request returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Path relative to the store's root.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Last change, in microseconds since the Unix epoch; `None` where the store does not say.
    pub last_modified_us: Option<i64>,
}

/// Listed objects in batches, in no promised order.
pub type ListedBatches = BoxStream<'static, Result<Vec<ObjectMeta>>>;

/// How many objects a batch of a listing holds that is no page of the store's. Small in tests, so that most listings take several.
pub(crate) const LISTED_AT_ONCE: usize = if cfg!(test) { 7 } else { 4096 };

/// The outcome of a put-if-absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object did not exist and now holds our bytes.
    Created,
    /// An object of that name was there before; it is untouched.
    Exists,
}

/// The end of an object, with the object's whole size.
#[derive(Debug, Clone)]
pub struct Tail {
    /// The last bytes: as many as requested, or the whole object if it is shorter.
    pub bytes: Bytes,
    /// The object's size in bytes.
    pub size: u64,
}

/// The first paths of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstPaths {
    /// In byte order.
    pub paths: Vec<String>,
    /// Whether the folder holds no others.
    pub complete: bool,
}

/// Range reads, puts, put-if-absent, listings and deletes of objects under one root.
#[async_trait]
pub trait Store: Debug + Send + Sync + 'static {
    /// The root as the user wrote it, without credentials: for error messages.
    fn uri(&self) -> &str;

    /// The base path that a URI lies below, and its path there; `None` where no such store is mounted.
    fn base_of(&self, _uri: &str) -> Option<(u32, String)> {
        None
    }

    /// The IO statistics of this handle: [`StatsCounters::take`] returns the counts since its last call.
    fn stats(&self) -> &StatsCounters;

    /// Whether a read costs a network round trip, so that callers make few large concurrent requests and none twice.
    fn is_far(&self) -> bool {
        false
    }

    /// The bytes of several ranges of one object, in the order requested. Ranges that lie near each other are coalesced.
    /// A range past the end of the object is an error of kind corrupt, as some file promised those bytes.
    /// An empty range yields empty bytes without a read, even if there is no such object.
    async fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;

    /// The last `nbytes` bytes of an object and its size, in one request where the store serves suffix ranges.
    async fn get_tail(&self, path: &str, nbytes: u64) -> Result<Tail>;

    /// The same, for an object whose size was recorded elsewhere: one request also where the store serves no suffix ranges.
    /// If the recorded size is wrong, the bytes are wrong or it is an error of kind corrupt.
    async fn get_tail_of(&self, path: &str, nbytes: u64, size: Option<u64>) -> Result<Tail> {
        let _ = size;
        self.get_tail(path, nbytes).await
    }

    /// A whole object.
    async fn get(&self, path: &str) -> Result<Bytes>;

    /// An object's metadata.
    async fn head(&self, path: &str) -> Result<ObjectMeta>;

    /// Writes an object, replacing what was there. Readers see the old bytes or the new, never a part.
    async fn put(&self, path: &str, bytes: Bytes) -> Result<()>;

    /// Like [`Store::put`], for an object that only other writers of the moment look at: a power cut may lose it or a part of it, also in
    /// a durable store.
    async fn put_unsynced(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.put(path, bytes).await
    }

    /// Writes an object only if none of that name exists. Exactly one of many concurrent callers gets [`PutOutcome::Created`].
    /// On success of a durable store the bytes and the name are on stable storage.
    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<PutOutcome>;

    /// Opens a new object for writing piece by piece. Nothing is visible under `path` before [`ObjectWriter::finish`].
    async fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>>;

    /// The same for an object that nothing names before it is finished, and that is left alone where a power cut comes first: a part of
    /// it may be under its name then. Saves a sync of a file system.
    async fn staging_writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>> {
        self.writer(path).await
    }

    /// All objects whose path starts with `prefix` (a folder, ending in `/`, or empty for all), in byte order of their paths.
    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>>;

    /// The same in batches and in no promised order: where the store lists by the page, memory does not grow with the number of objects.
    async fn list_batches(&self, prefix: &str) -> Result<ListedBatches> {
        let found = self.list(prefix).await?;
        Ok(in_batches(found))
    }

    /// The paths alone, which a file system lists without a `stat` of each file.
    async fn list_paths(&self, prefix: &str) -> Result<Vec<String>> {
        let found = self.list(prefix).await?;
        Ok(found.into_iter().map(|meta| meta.path).collect())
    }

    /// The folders directly below a folder, each with its `/`, in byte order: one delimited listing where the store has them. A file
    /// system lists empty ones as well.
    async fn list_folders(&self, prefix: &str) -> Result<Vec<String>> {
        Ok(folders_of(prefix, &self.list_paths(prefix).await?))
    }

    /// The first paths in a folder, in byte order: `count` of them or more, in one request where the store lists by the page.
    async fn list_first(&self, prefix: &str, count: usize) -> Result<FirstPaths> {
        let _ = count;
        let paths = self.list_paths(prefix).await?;
        Ok(FirstPaths { paths, complete: true })
    }

    /// The paths in a folder whose names start with `start`, in byte order. A store that can list by a prefix lists no others.
    async fn list_starting(&self, prefix: &str, start: &str) -> Result<Vec<String>> {
        let wanted = format!("{prefix}{start}");
        let mut found = self.list_paths(prefix).await?;
        found.retain(|path| path.starts_with(&wanted));
        Ok(found)
    }

    /// Removes an object. A missing one is no error.
    async fn delete(&self, path: &str) -> Result<()>;

    /// Removes objects, many per request where the store allows. Missing ones are no error; after an error some may be gone.
    async fn delete_all(&self, paths: &[String]) -> Result<()> {
        for path in paths {
            self.delete(path).await?;
        }
        Ok(())
    }

    /// The temporary files below a folder, which no other listing shows: those that dead writers left behind, and those of writers that are
    /// still at work. Only local folders have them.
    async fn list_unfinished(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        check_folder(prefix)?;
        Ok(Vec::new())
    }

    /// Removes a temporary file that [`Store::list_unfinished`] listed; any other path is refused.
    async fn delete_unfinished(&self, path: &str) -> Result<()> {
        Err(not_unfinished(path))
    }
}

/// Cuts a whole listing into batches.
fn in_batches(found: Vec<ObjectMeta>) -> ListedBatches {
    stream::iter(found).chunks(LISTED_AT_ONCE).map(Ok).boxed()
}

/// The folders directly below a folder that occur in paths.
fn folders_of(prefix: &str, paths: &[String]) -> Vec<String> {
    let below = paths.iter().filter_map(|path| {
        let (name, _) = path.strip_prefix(prefix)?.split_once('/')?;
        Some(format!("{prefix}{name}/"))
    });
    let mut found: Vec<String> = below.collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The error for a path that [`Store::list_unfinished`] does not list.
pub(crate) fn not_unfinished(path: &str) -> StoreError {
    StoreError::invalid_argument(path, "expected the path of bytes that a writer left unfinished")
}

/// A new object that is being written.
#[async_trait]
pub trait ObjectWriter: Send {
    /// Appends bytes.
    async fn write(&mut self, bytes: Bytes) -> Result<()>;

    /// Makes the object visible (and durable, if the store is), and returns its size in bytes.
    async fn finish(self: Box<Self>) -> Result<u64>;

    /// Abandons the object and removes its temporary file or upload.
    async fn abort(self: Box<Self>) -> Result<()>;
}
