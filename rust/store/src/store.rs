//! The seam between tables and the place that holds their bytes.
//!
//! A [`Store`] is a flat space of objects under one root: a folder, a bucket prefix, memory, or (later) a branch of a repository.
//! Paths are relative to that root, `/`-separated, without a leading slash. A path names bytes at one moment only: whoever caches
//! must cache by an object's identity, never by its path.

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

/// What a store knows of an object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Path relative to the store's root.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Last change, in microseconds since the Unix epoch; `None` where the store does not say.
    pub last_modified_us: Option<i64>,
}

/// Objects that are found some at a time, in no promised order.
pub type ListedBatches = BoxStream<'static, Result<Vec<ObjectMeta>>>;

/// How many objects a listing tells of at once. In tests it nearly always takes several batches.
pub(crate) const LISTED_AT_ONCE: usize = if cfg!(test) { 7 } else { 4096 };

/// What became of a put that must not replace anything.
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
    /// The last bytes, as many as were asked for or as there are.
    pub bytes: Bytes,
    /// The object's size in bytes.
    pub size: u64,
}

/// The paths that come first in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstPaths {
    /// In byte order.
    pub paths: Vec<String>,
    /// Whether the folder holds no others.
    pub complete: bool,
}

/// Ranges, puts and put-if-absent: all that tables need of the place that holds them.
#[async_trait]
pub trait Store: Debug + Send + Sync + 'static {
    /// The root as the user wrote it, without credentials: for error messages.
    fn uri(&self) -> &str;

    /// The counts of what this handle did: [`StatsCounters::take`] gives those since the last call.
    fn stats(&self) -> &StatsCounters;

    /// Whether a read costs a round trip through a network: then much is asked for at once, and nothing twice.
    fn is_far(&self) -> bool {
        false
    }

    /// The bytes of several ranges of one object, in the order asked for. Ranges that lie near each other are read together.
    /// A range past the end of the object is an error of kind corrupt: somebody promised bytes that are not there.
    /// An empty range is empty bytes and costs no read, so neither the object nor its length is looked at for it.
    async fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;

    /// The last `nbytes` bytes of an object and its size, in one request where the store allows.
    async fn get_tail(&self, path: &str, nbytes: u64) -> Result<Tail>;

    /// The same of an object whose size somebody has noted, for stores that cannot count from the end: one request there too.
    /// If the note is wrong, so are the bytes, or it is an error of kind corrupt.
    async fn get_tail_of(&self, path: &str, nbytes: u64, size: Option<u64>) -> Result<Tail> {
        let _ = size;
        self.get_tail(path, nbytes).await
    }

    /// A whole object.
    async fn get(&self, path: &str) -> Result<Bytes>;

    /// Size and time of an object.
    async fn head(&self, path: &str) -> Result<ObjectMeta>;

    /// Writes an object, replacing what was there. Readers see the old bytes or the new, never a part.
    async fn put(&self, path: &str, bytes: Bytes) -> Result<()>;

    /// Writes an object only if none of that name exists. Exactly one of many callers is told [`PutOutcome::Created`].
    /// On success of a durable store the bytes and the name are on stable storage.
    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<PutOutcome>;

    /// Opens a new object for writing piece by piece. Nothing is visible under `path` before [`ObjectWriter::finish`].
    async fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>>;

    /// All objects whose path starts with `prefix` (a folder, ending in `/`, or empty for all), in byte order of their paths.
    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>>;

    /// The same some at a time and in no promised order, so that memory does not grow with their number where the store tells of them so.
    async fn list_batches(&self, prefix: &str) -> Result<ListedBatches> {
        let found = self.list(prefix).await?;
        Ok(in_batches(found))
    }

    /// Their paths alone, which a file system tells without a look at each file.
    async fn list_paths(&self, prefix: &str) -> Result<Vec<String>> {
        let found = self.list(prefix).await?;
        Ok(found.into_iter().map(|meta| meta.path).collect())
    }

    /// The folders directly below a folder, each with its `/`, in byte order: one delimited listing where the store has them. A file
    /// system tells of empty ones as well.
    async fn list_folders(&self, prefix: &str) -> Result<Vec<String>> {
        Ok(folders_of(prefix, &self.list_paths(prefix).await?))
    }

    /// The first paths in a folder, in byte order: `count` of them or more, in one request where the store allows.
    async fn list_first(&self, prefix: &str, count: usize) -> Result<FirstPaths> {
        let _ = count;
        let paths = self.list_paths(prefix).await?;
        Ok(FirstPaths { paths, complete: true })
    }

    /// The paths in a folder whose names start with `start`, in byte order. A store that can list them alone lists no others.
    async fn list_starting(&self, prefix: &str, start: &str) -> Result<Vec<String>> {
        let wanted = format!("{prefix}{start}");
        let mut found = self.list_paths(prefix).await?;
        found.retain(|path| path.starts_with(&wanted));
        Ok(found)
    }

    /// Removes an object. Removing what is not there is not an error.
    async fn delete(&self, path: &str) -> Result<()>;

    /// Removes objects, many with one request where the store takes that. Those that are not there are no error; after an error some are gone.
    async fn delete_all(&self, paths: &[String]) -> Result<()> {
        for path in paths {
            self.delete(path).await?;
        }
        Ok(())
    }

    /// What writers that died left behind below a folder: bytes that never got their object's name, which no other listing shows. Those of
    /// writers that are at work are among them. Only local folders show such bytes.
    async fn list_unfinished(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        check_folder(prefix)?;
        Ok(Vec::new())
    }

    /// Removes what [`Store::list_unfinished`] told of; any other path is refused.
    async fn delete_unfinished(&self, path: &str) -> Result<()> {
        Err(not_unfinished(path))
    }
}

/// What was found at once, in batches.
fn in_batches(found: Vec<ObjectMeta>) -> ListedBatches {
    stream::iter(found).chunks(LISTED_AT_ONCE).map(Ok).boxed()
}

/// The folders directly below a folder that paths lead through.
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

/// The error for a path that [`Store::list_unfinished`] does not tell of.
pub(crate) fn not_unfinished(path: &str) -> StoreError {
    StoreError::invalid_argument(path, "expected the path of bytes that a writer left unfinished")
}

/// A new object that is being written.
#[async_trait]
pub trait ObjectWriter: Send {
    /// Appends bytes.
    async fn write(&mut self, bytes: Bytes) -> Result<()>;

    /// Makes the object visible, durable where the store is, and returns its size in bytes.
    async fn finish(self: Box<Self>) -> Result<u64>;

    /// Gives the object up and leaves nothing behind.
    async fn abort(self: Box<Self>) -> Result<()>;
}
