//! A folder of a branch, as a store.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use esker_store::path::{check_folder, check_object};
use esker_store::{FirstPaths, ObjectMeta, ObjectWriter, PutOutcome, StatsCounters, Store, StoreError, StoreRef, Tail};
use sha2::{Digest, Sha256};

use super::staging::{hex, now_us, BranchStaging, Staged};

type StoreResult<T> = esker_store::Result<T>;

/// A folder of a branch, as a store.
#[derive(Debug, Clone)]
pub struct BranchStore {
    uri: String,
    prefix: String,
    staging: Arc<BranchStaging>,
    read_only: bool,
}

impl BranchStore {
    /// The objects whose paths start with `prefix` (ending in `/`, or empty). `uri` is for messages.
    pub fn new(uri: String, prefix: &str, staging: Arc<BranchStaging>, read_only: bool) -> StoreResult<Self> {
        check_folder(prefix)?;
        Ok(BranchStore {
            uri,
            prefix: prefix.to_owned(),
            staging,
            read_only,
        })
    }

    fn full(&self, path: &str) -> StoreResult<String> {
        check_object(path)?;
        Ok(format!("{}{path}", self.prefix))
    }

    fn shown(&self, path: &str) -> String {
        format!("{}/{path}", self.uri.trim_end_matches('/'))
    }

    fn writable(&self, path: &str) -> StoreResult<String> {
        if self.read_only {
            let message = "expected a transaction, found a ref, which never changes; write through `transact`";
            return Err(StoreError::unsupported(self.shown(path), message));
        }
        if self.staging.has_ended() {
            return Err(has_ended(self.shown(path)));
        }
        self.full(path)
    }

    async fn there(&self, path: &str) -> StoreResult<Staged> {
        let found = self.staging.find(&self.full(path)?).await?;
        found.ok_or_else(|| StoreError::not_found(self.shown(path)))
    }

    /// The store in which the object at a path lies, its path there, and its size.
    async fn place(&self, path: &str) -> StoreResult<(StoreRef, String, u64)> {
        let found = self.there(path).await?;
        let (store, name) = self.staging.place(&found).map_err(|error| {
            let message = format!("an imported object whose place cannot be opened: {error}");
            StoreError::unsupported(self.shown(path), message)
        })?;
        Ok((store, name, found.size))
    }

    async fn stage_bytes(&self, path: &str, full: &str, bytes: Bytes) -> StoreResult<()> {
        let staged = Staged {
            address: self.staging.new_address(),
            size: bytes.len() as u64,
            checksum: hex(&Sha256::digest(&bytes), 32),
            modified_us: now_us(),
            elsewhere: false,
        };
        self.staging.store().put(&staged.address, bytes).await?;
        self.note(path, full, Some(staged))
    }

    fn note(&self, path: &str, full: &str, change: Option<Staged>) -> StoreResult<()> {
        if self.staging.note(full, change) {
            return Ok(());
        }
        Err(has_ended(self.shown(path)))
    }
}

/// What a write to a transaction that has ended says, whether it began before or after the end.
fn has_ended(shown: String) -> StoreError {
    let message = "expected a transaction at work, found one that has ended; begin another";
    StoreError::unsupported(shown, message)
}

#[async_trait]
impl Store for BranchStore {
    fn uri(&self) -> &str {
        &self.uri
    }

    fn stats(&self) -> &StatsCounters {
        self.staging.store().stats()
    }

    fn is_far(&self) -> bool {
        self.staging.store().is_far()
    }

    async fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> StoreResult<Vec<Bytes>> {
        let (store, name, _) = self.place(path).await?;
        store.get_ranges(&name, ranges).await
    }

    async fn get_tail(&self, path: &str, nbytes: u64) -> StoreResult<Tail> {
        let (store, name, size) = self.place(path).await?;
        store.get_tail_of(&name, nbytes, Some(size)).await
    }

    async fn get(&self, path: &str) -> StoreResult<Bytes> {
        let (store, name, _) = self.place(path).await?;
        store.get(&name).await
    }

    async fn head(&self, path: &str) -> StoreResult<ObjectMeta> {
        let found = self.there(path).await?;
        Ok(meta(path.to_owned(), &found))
    }

    async fn put(&self, path: &str, bytes: Bytes) -> StoreResult<()> {
        let full = self.writable(path)?;
        self.stage_bytes(path, &full, bytes).await
    }

    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> StoreResult<PutOutcome> {
        let full = self.writable(path)?;
        let _alone = self.staging.putting.lock().await;
        if self.staging.find(&full).await?.is_some() {
            return Ok(PutOutcome::Exists);
        }
        self.stage_bytes(path, &full, bytes).await?;
        Ok(PutOutcome::Created)
    }

    async fn writer(&self, path: &str) -> StoreResult<Box<dyn ObjectWriter>> {
        let full = self.writable(path)?;
        let address = self.staging.new_address();
        let inner = self.staging.store().writer(&address).await?;
        Ok(Box::new(StagingWriter {
            staging: self.staging.clone(),
            shown: self.shown(path),
            full,
            address,
            inner,
            hash: Sha256::new(),
        }))
    }

    async fn list(&self, prefix: &str) -> StoreResult<Vec<ObjectMeta>> {
        check_folder(prefix)?;
        let found = self.staging.list(&format!("{}{prefix}", self.prefix), None).await?;
        let below = found.objects.iter().filter_map(|(path, staged)| {
            let path = path.strip_prefix(&self.prefix)?;
            Some(meta(path.to_owned(), staged))
        });
        Ok(below.collect())
    }

    async fn list_first(&self, prefix: &str, count: usize) -> StoreResult<FirstPaths> {
        check_folder(prefix)?;
        let folder = format!("{}{prefix}", self.prefix);
        let found = self.staging.list(&folder, Some(count)).await?;
        let below = found.objects.keys().filter_map(|path| path.strip_prefix(&self.prefix));
        Ok(FirstPaths {
            paths: below.map(str::to_owned).collect(),
            complete: found.complete,
        })
    }

    async fn delete(&self, path: &str) -> StoreResult<()> {
        let full = self.writable(path)?;
        let _alone = self.staging.putting.lock().await;
        if self.staging.find(&full).await?.is_some() {
            self.note(path, &full, None)?;
        }
        Ok(())
    }
}

struct StagingWriter {
    staging: Arc<BranchStaging>,
    /// Its path, for messages.
    shown: String,
    full: String,
    address: String,
    inner: Box<dyn ObjectWriter>,
    hash: Sha256,
}

#[async_trait]
impl ObjectWriter for StagingWriter {
    async fn write(&mut self, bytes: Bytes) -> StoreResult<()> {
        self.hash.update(&bytes);
        self.inner.write(bytes).await
    }

    async fn finish(self: Box<Self>) -> StoreResult<u64> {
        let this = *self;
        let size = this.inner.finish().await?;
        let staged = Staged {
            address: this.address,
            size,
            checksum: hex(&this.hash.finalize(), 32),
            modified_us: now_us(),
            elsewhere: false,
        };
        if this.staging.note(&this.full, Some(staged)) {
            return Ok(size);
        }
        Err(has_ended(this.shown))
    }

    async fn abort(self: Box<Self>) -> StoreResult<()> {
        self.inner.abort().await
    }
}

fn meta(path: String, staged: &Staged) -> ObjectMeta {
    ObjectMeta {
        path,
        size: staged.size,
        last_modified_us: Some(staged.modified_us),
    }
}
