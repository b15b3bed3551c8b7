//! The staging of a branch: uncommitted changes over a content.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use esker_store::{StoreError, StoreRef};
use sha2::{Digest, Sha256};

use super::staged_paths::StagedPaths;
use crate::entry::{AddressType, Entry};
use crate::error::GravelerError;
use crate::list::{List, Listed};
use crate::metarange::Metarange;
use crate::storage::Storage;
use crate::value::Value;

type StoreResult<T> = esker_store::Result<T>;

/// How many paths are listed at a time.
const BATCH: usize = 1024;

/// The object at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Staged {
    /// Below the repository's root.
    pub address: String,
    /// In bytes.
    pub size: u64,
    /// SHA-256 of the bytes, in hex.
    pub checksum: String,
    /// When it was put, in microseconds since the Unix epoch.
    pub modified_us: i64,
    /// Whether it was imported: the address is a full URI, which this store does not read.
    pub elsewhere: bool,
}

impl Staged {
    /// The entry of an object that is the repository's own.
    fn entry(self) -> Entry {
        let nanos = self.modified_us.rem_euclid(1_000_000) * 1000;
        Entry {
            address: self.address,
            size: i64::try_from(self.size).unwrap_or(i64::MAX),
            e_tag: self.checksum,
            last_modified: Some((
                self.modified_us.div_euclid(1_000_000),
                i32::try_from(nanos).unwrap_or(0),
            )),
            ..Entry::default()
        }
    }
}

/// The staging of a branch over a content. Stores of several folders of the branch share one.
pub struct BranchStaging {
    storage: Arc<Storage>,
    base: Arc<Metarange>,
    token: String,
    count: AtomicU64,
    ended: AtomicBool,
    staged: Arc<StagedPaths>,
    /// Held by a put-if-absent from its check that the path is free until the path is staged.
    pub(super) putting: tokio::sync::Mutex<()>,
}

impl fmt::Debug for BranchStaging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BranchStaging").finish_non_exhaustive()
    }
}

impl BranchStaging {
    /// A staging over a content, with staged paths that may be shared. The random token makes addresses that no other writer uses.
    pub fn new(storage: Arc<Storage>, base: Arc<Metarange>, token: String, staged: Arc<StagedPaths>) -> Arc<Self> {
        Arc::new(BranchStaging {
            storage,
            base,
            token,
            count: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            staged,
            putting: tokio::sync::Mutex::new(()),
        })
    }

    /// Ends the staging: later writes are errors.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    pub(super) fn note(&self, path: &str, change: Option<Staged>) {
        self.staged.stage(path, change.map(Staged::entry));
    }

    pub(super) fn store(&self) -> &StoreRef {
        self.storage.store()
    }

    pub(super) fn new_address(&self) -> String {
        let hours = i64::try_from(since_epoch().as_secs() / 3600).unwrap_or(0);
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let name = hex(&Sha256::digest(format!("{}/{number}", self.token)), 16);
        format!("data/{:08}/{name}", 10_000_000_i64.saturating_sub(hours))
    }

    pub(super) async fn find(&self, path: &str) -> StoreResult<Option<Staged>> {
        if let Some(change) = self.staged.get(path).map_err(sorted)? {
            return change.map(described).transpose();
        }
        let Some(id) = self.base.id() else { return Ok(None) };
        match self.storage.get(id, path.as_bytes()).await.map_err(sorted)? {
            Some(value) => described_value(&value).map(Some),
            None => Ok(None),
        }
    }

    pub(super) async fn list(&self, prefix: &str) -> StoreResult<BTreeMap<String, Staged>> {
        let mut found = BTreeMap::new();
        let mut list = List::new(&self.storage, &self.base, prefix.as_bytes(), b"", b"");
        loop {
            let batch = list.next_batch(BATCH).await.map_err(sorted)?;
            if batch.is_empty() {
                break;
            }
            for listed in batch {
                // A path that is not UTF-8 cannot be an object of a store.
                if let Listed::Record(key, value) = listed {
                    if let Ok(path) = String::from_utf8(key) {
                        found.insert(path, described_value(&value)?);
                    }
                }
            }
        }
        for (path, change) in self.staged.within(prefix, "", usize::MAX).map_err(sorted)? {
            match change {
                Some(entry) => found.insert(path, described(entry)?),
                None => found.remove(&path),
            };
        }
        Ok(found)
    }
}

/// The object of a framed value.
fn described_value(value: &[u8]) -> StoreResult<Staged> {
    let entry = Value::decode(value).and_then(|value| Entry::decode(value.data));
    described(entry.map_err(sorted)?)
}

/// The object of an entry.
fn described(entry: Entry) -> StoreResult<Staged> {
    let elsewhere = match entry.address_type {
        AddressType::Full => true,
        AddressType::ByPrefix => entry.address.contains("://"),
        AddressType::Relative => false,
    };
    let size = u64::try_from(entry.size)
        .map_err(|_| StoreError::corrupt(&entry.address, format!("expected a size, found {}", entry.size)))?;
    let (seconds, nanos) = entry.last_modified.unwrap_or_default();
    Ok(Staged {
        address: entry.address,
        size,
        checksum: entry.e_tag,
        modified_us: seconds
            .saturating_mul(1_000_000)
            .saturating_add(i64::from(nanos / 1000)),
        elsewhere,
    })
}

fn sorted(error: GravelerError) -> StoreError {
    match error {
        GravelerError::InvalidArgument(message) => StoreError::invalid_argument("", message),
        GravelerError::Unsupported { path, message } => StoreError::unsupported(path, message),
        GravelerError::Corrupt { path, message } => StoreError::corrupt(path, message),
        GravelerError::Store(error) => error,
    }
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

pub(super) fn now_us() -> i64 {
    i64::try_from(since_epoch().as_micros()).unwrap_or(i64::MAX)
}

pub(super) fn hex(bytes: &[u8], count: usize) -> String {
    let mut text = String::with_capacity(2 * count);
    for byte in bytes.iter().take(count) {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
