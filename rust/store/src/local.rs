//! A store over a local folder: plain files, read into buffers that are handed on without a further copy.
//!
//! IO blocks the calling thread and is not moved to another one: a read from the page cache takes less time than the hand-over. A caller
//! that wants parallel reads spawns tasks on the runtime, whose workers may block. Only ranges that are not in the page cache are read by other
//! threads, several at a time.

mod ahead;
mod durable;
mod read;
mod temporary;
mod walk;
mod writer;

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use tokio::task::JoinError;

use crate::error::{Result, StoreError};
use crate::path::{check_folder, check_object, check_unfinished};
use crate::stats::StatsCounters;
use crate::store::{ListedBatches, ObjectMeta, ObjectWriter, PutOutcome, Store, Tail};

use durable::Folders;
use temporary::Temporary;
use writer::Named;

/// A store over a folder. The first write creates the folder.
#[derive(Debug)]
pub struct LocalStore {
    uri: String,
    root: PathBuf,
    folders: Arc<Folders>,
    stats: Arc<StatsCounters>,
}

impl LocalStore {
    /// A store over the folder `root`; errors name it `uri`. A relative path is resolved against the working folder. With `durable`, a
    /// write is on stable storage when it returns.
    pub fn new(uri: impl Into<String>, root: impl Into<PathBuf>, durable: bool) -> Result<Self> {
        let uri = uri.into();
        let root = root.into();
        if root.as_os_str().is_empty() || root.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(StoreError::invalid_argument(
                uri,
                "expected the path of a folder, without NUL bytes",
            ));
        }
        let root =
            std::path::absolute(&root).map_err(|error| StoreError::from_io(&uri, "find the working folder", error))?;
        Ok(Self {
            uri,
            folders: Arc::new(Folders::new(&root, durable)),
            root,
            stats: Arc::default(),
        })
    }

    /// The folder, as an absolute path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn full(&self, path: &str) -> Result<PathBuf> {
        check_object(path)?;
        Ok(self.root.join(path))
    }
}

/// The error of what another thread did not finish, because the runtime stops.
fn unfinished(path: &Path, doing: &str, error: JoinError) -> StoreError {
    match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => StoreError::from_io(shown(path), doing, io::Error::other(error)),
    }
}

/// A path as error messages show it.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[async_trait]
impl Store for LocalStore {
    fn uri(&self) -> &str {
        &self.uri
    }

    fn stats(&self) -> &StatsCounters {
        &self.stats
    }

    async fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        read::read_ranges(&self.full(path)?, ranges, &self.stats).await
    }

    async fn get_tail(&self, path: &str, nbytes: u64) -> Result<Tail> {
        read::read_tail(&self.full(path)?, nbytes, &self.stats).await
    }

    async fn get(&self, path: &str) -> Result<Bytes> {
        Ok(read::read_tail(&self.full(path)?, u64::MAX, &self.stats).await?.bytes)
    }

    async fn head(&self, path: &str) -> Result<ObjectMeta> {
        let full = self.full(path)?;
        self.stats.add_read(0);
        let found = fs::metadata(&full).map_err(|error| read::sort_read_error(&full, "look up", error))?;
        if !found.is_file() {
            return Err(read::not_a_file(&full));
        }
        Ok(walk::describe(path.to_owned(), &found))
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<()> {
        let full = self.full(path)?;
        self.stats.add_write(bytes.len() as u64);
        Temporary::with_bytes(&self.folders, &full, &bytes)?.replace(&full)
    }

    async fn put_unsynced(&self, path: &str, bytes: Bytes) -> Result<()> {
        let full = self.full(path)?;
        self.stats.add_write(bytes.len() as u64);
        Temporary::with_bytes(&self.folders, &full, &bytes)?.replace_unsynced(&full)
    }

    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<PutOutcome> {
        let full = self.full(path)?;
        self.stats.add_write(bytes.len() as u64);
        if fs::symlink_metadata(&full).is_ok() {
            return Ok(PutOutcome::Exists);
        }
        Temporary::with_bytes(&self.folders, &full, &bytes)?.create(&full)
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>> {
        let full = self.full(path)?;
        Ok(Box::new(writer::LocalWriter::new(
            &self.folders,
            full,
            Named::Last,
            Arc::clone(&self.stats),
        )?))
    }

    async fn staging_writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>> {
        let full = self.full(path)?;
        // What is replaced keeps its bytes until those of the new file are safe.
        let named = match fs::symlink_metadata(&full) {
            Ok(_) => Named::Last,
            Err(_) => Named::BeforeSync,
        };
        Ok(Box::new(writer::LocalWriter::new(
            &self.folders,
            full,
            named,
            Arc::clone(&self.stats),
        )?))
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        check_folder(prefix)?;
        self.stats.add_list();
        walk::walk(&self.root, prefix)
    }

    async fn list_batches(&self, prefix: &str) -> Result<ListedBatches> {
        check_folder(prefix)?;
        self.stats.add_list();
        Ok(stream::iter(walk::Walk::new(&self.root, prefix)).boxed())
    }

    async fn list_paths(&self, prefix: &str) -> Result<Vec<String>> {
        check_folder(prefix)?;
        self.stats.add_list();
        walk::walk_paths(&self.root, prefix)
    }

    async fn list_folders(&self, prefix: &str) -> Result<Vec<String>> {
        check_folder(prefix)?;
        self.stats.add_list();
        walk::folders(&self.root, prefix)
    }

    async fn delete(&self, path: &str) -> Result<()> {
        let full = self.full(path)?;
        self.stats.add_write(0);
        self.folders.remove(&full)
    }

    async fn delete_all(&self, paths: &[String]) -> Result<()> {
        let full: Vec<PathBuf> = paths.iter().map(|path| self.full(path)).collect::<Result<_>>()?;
        full.iter().for_each(|_| self.stats.add_write(0));
        self.folders.remove_all(&full)
    }

    async fn list_unfinished(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        check_folder(prefix)?;
        self.stats.add_list();
        walk::walk_unfinished(&self.root, prefix)
    }

    async fn delete_unfinished(&self, path: &str) -> Result<()> {
        check_unfinished(path)?;
        self.stats.add_write(0);
        self.folders.remove(&self.root.join(path))
    }
}
