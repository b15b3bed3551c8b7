//! The staging of a branch: uncommitted changes over a content.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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
/// How addresses begin that lie on this machine.
const LOCAL: &str = "local://";
/// Most stores of imported objects that are kept open.
const MOST_OPEN: usize = 256;

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
    /// Whether it was imported: the address is a full URI.
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
    base: RwLock<Arc<Metarange>>,
    token: String,
    count: AtomicU64,
    /// Written by `end`, and read until a change is staged: what was staged before the end is in what is committed.
    ended: RwLock<bool>,
    staged: Arc<StagedPaths>,
    /// When the first object since the last reset was given an address.
    began: Mutex<Option<(Instant, SystemTime)>>,
    /// Options of the stores that hold imported objects, and those that are open, by their folders.
    options: HashMap<String, String>,
    elsewhere: Mutex<HashMap<String, StoreRef>>,
    /// Held by a put-if-absent from its check that the path is free until the path is staged.
    pub(super) putting: tokio::sync::Mutex<()>,
}

impl fmt::Debug for BranchStaging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BranchStaging").finish_non_exhaustive()
    }
}

impl BranchStaging {
    /// A staging over a content, with staged paths that may be shared. The random token makes addresses that no other writer uses;
    /// `options` open the stores of imported objects.
    pub fn new(
        storage: Arc<Storage>,
        base: Arc<Metarange>,
        token: String,
        staged: Arc<StagedPaths>,
        options: HashMap<String, String>,
    ) -> Arc<Self> {
        Arc::new(BranchStaging {
            storage,
            base: RwLock::new(base),
            token,
            count: AtomicU64::new(0),
            ended: RwLock::new(false),
            staged,
            began: Mutex::new(None),
            options,
            elsewhere: Mutex::new(HashMap::new()),
            putting: tokio::sync::Mutex::new(()),
        })
    }

    /// Puts another content below what is staged.
    pub fn rebase(&self, base: Arc<Metarange>) {
        *self.base.write().unwrap_or_else(PoisonError::into_inner) = base;
    }

    /// How long ago the first object was written since the last reset, by the clock that says more: one stands still while the machine
    /// sleeps. Zero if none was.
    pub fn age(&self) -> Duration {
        let began = *self.began.lock().unwrap_or_else(PoisonError::into_inner);
        began.map_or(Duration::ZERO, |(steady, wall)| {
            steady.elapsed().max(wall.elapsed().unwrap_or_default())
        })
    }

    /// Forgets when the first object was written: what was staged is committed.
    pub fn reset_age(&self) {
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn base(&self) -> Arc<Metarange> {
        self.base.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the staging: later writes are errors.
    pub fn end(&self) {
        *self.ended.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    pub(super) fn has_ended(&self) -> bool {
        *self.ended.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stages a change, unless the staging has ended while its bytes were put; whether it did.
    pub(super) fn note(&self, path: &str, change: Option<Staged>) -> bool {
        let ended = self.ended.read().unwrap_or_else(PoisonError::into_inner);
        if !*ended {
            self.staged.stage(path, change.map(Staged::entry));
        }
        !*ended
    }

    pub(super) fn store(&self) -> &StoreRef {
        self.storage.store()
    }

    /// The store of an object, and its path in that store. An imported object lies in a store of its own.
    pub(super) fn place(&self, object: &Staged) -> StoreResult<(StoreRef, String)> {
        if !object.elsewhere {
            return Ok((self.store().clone(), object.address.clone()));
        }
        let address = object.address.strip_prefix(LOCAL).unwrap_or(&object.address);
        let (folder, name) = address
            .rsplit_once('/')
            .filter(|(folder, name)| !name.is_empty() && !folder.is_empty())
            .ok_or_else(|| StoreError::corrupt(address, "expected the address of an imported object, with a folder"))?;
        let mut open = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = open.get(folder) {
            return Ok((store.clone(), name.to_owned()));
        }
        let store = esker_store::open(&uri_of(folder), &self.options, true)?;
        if open.len() >= MOST_OPEN {
            open.clear();
        }
        open.insert(folder.to_owned(), store.clone());
        Ok((store, name.to_owned()))
    }

    pub(super) fn new_address(&self) -> String {
        let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
        began.get_or_insert_with(|| (Instant::now(), SystemTime::now()));
        drop(began);
        let hours = i64::try_from(since_epoch().as_secs() / 3600).unwrap_or(0);
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let name = hex(&Sha256::digest(format!("{}/{number}", self.token)), 16);
        format!("data/{:08}/{name}", 10_000_000_i64.saturating_sub(hours))
    }

    pub(super) async fn find(&self, path: &str) -> StoreResult<Option<Staged>> {
        if let Some(change) = self.staged.get(path).map_err(sorted)? {
            return change.map(described).transpose();
        }
        let base = self.base();
        let Some(id) = base.id() else { return Ok(None) };
        match self.storage.get(id, path.as_bytes()).await.map_err(sorted)? {
            Some(value) => described_value(&value).map(Some),
            None => Ok(None),
        }
    }

    /// The objects whose paths start with a prefix: all, or with a `count` so many of the first ones or more.
    pub(super) async fn list(&self, prefix: &str, count: Option<usize>) -> StoreResult<Found> {
        let mut found = BTreeMap::new();
        let staged = self.staged.within(prefix, "", usize::MAX).map_err(sorted)?;
        // As many committed ones as are staged may go.
        let enough = count.map_or(usize::MAX, |count| count.saturating_add(staged.len()));
        let base = self.base();
        let mut list = List::new(&self.storage, &base, prefix.as_bytes(), b"", b"");
        let mut complete = false;
        while found.len() < enough {
            let batch = list.next_batch(enough.min(BATCH)).await.map_err(sorted)?;
            if batch.is_empty() {
                complete = true;
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
        // What is staged behind the last committed path that was read is no first path.
        let last = (!complete).then(|| found.keys().next_back().cloned()).flatten();
        for (path, change) in staged {
            if last.as_ref().is_some_and(|last| path > *last) {
                break;
            }
            match change {
                Some(entry) => found.insert(path, described(entry)?),
                None => found.remove(&path),
            };
        }
        Ok(Found {
            objects: found,
            complete,
        })
    }
}

/// Listed objects by their paths, and whether there are no others.
pub(super) struct Found {
    pub objects: BTreeMap<String, Staged>,
    pub complete: bool,
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

/// The URI of a folder by its address, which has no escapes: object stores read them in a URI.
fn uri_of(folder: &str) -> String {
    let scheme = folder.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("s3" | "s3a" | "gs" | "az" | "azure" | "adl" | "abfs" | "abfss") => {
            folder.replace('%', "%25").replace('?', "%3F").replace('#', "%23")
        }
        _ => folder.to_owned(),
    }
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
