//! A short file that the read of the tail returned as a whole, so that later reads are served from memory.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use esker_store::{ObjectMeta, ObjectWriter, PutOutcome, Result, StatsCounters, Store, StoreRef, Tail};

/// A store that has one object in memory and forwards all other requests.
#[derive(Debug)]
pub(super) struct WholeFile {
    pub(super) store: StoreRef,
    pub(super) path: String,
    pub(super) bytes: Bytes,
}

impl WholeFile {
    /// The ranges, if all are of this file and within it.
    fn cut(&self, path: &str, ranges: &[Range<u64>]) -> Option<Vec<Bytes>> {
        let cut_one = |range: &Range<u64>| {
            let (from, to) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
            (from <= to && to <= self.bytes.len()).then(|| self.bytes.slice(from..to))
        };
        (path == self.path).then(|| ranges.iter().map(cut_one).collect())?
    }
}

#[async_trait]
impl Store for WholeFile {
    fn uri(&self) -> &str {
        self.store.uri()
    }

    fn stats(&self) -> &StatsCounters {
        self.store.stats()
    }

    fn is_far(&self) -> bool {
        self.store.is_far()
    }

    async fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        match self.cut(path, ranges) {
            Some(parts) => Ok(parts),
            None => self.store.get_ranges(path, ranges).await,
        }
    }

    async fn get_tail(&self, path: &str, nbytes: u64) -> Result<Tail> {
        self.store.get_tail(path, nbytes).await
    }

    async fn get_tail_of(&self, path: &str, nbytes: u64, size: Option<u64>) -> Result<Tail> {
        self.store.get_tail_of(path, nbytes, size).await
    }

    async fn get(&self, path: &str) -> Result<Bytes> {
        self.store.get(path).await
    }

    async fn head(&self, path: &str) -> Result<ObjectMeta> {
        self.store.head(path).await
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.store.put(path, bytes).await
    }

    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<PutOutcome> {
        self.store.put_if_absent(path, bytes).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn ObjectWriter>> {
        self.store.writer(path).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        self.store.list(prefix).await
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.store.delete(path).await
    }
}
