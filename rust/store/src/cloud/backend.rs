//! Opens the store at a URI with options, and caches the backends for later opens with the same settings.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use object_store::list::PaginatedListStore;
use object_store::ObjectStore;

use super::options::Options;
use super::place::Place;
use super::{azure, google, s3, Secrets};
use crate::error::{Result, StoreError};
use crate::object::{ObjectAdapter, ObjectOptions};
use crate::store::StoreRef;

/// A bucket as `object_store` reaches it.
#[derive(Clone)]
pub(super) struct Backend {
    pub store: Arc<dyn ObjectStore>,
    pub pages: Arc<dyn PaginatedListStore>,
    /// Whether the store lists keys in byte order.
    pub ordered: bool,
    /// Whether it serves suffix ranges: the last bytes of an object without its size.
    pub counts_from_the_end: bool,
    pub secrets: Arc<Secrets>,
}

/// The cache's capacity: changed credentials make a new backend each time.
const KEPT: usize = 64;

static SHARED: Mutex<Vec<(Vec<String>, Backend)>> = Mutex::new(Vec::new());

/// Opens the store at a URI of `s3`, `s3a`, `gs`, `az`, `azure`, `adl`, `abfs` or `abfss`.
///
/// Where neither a region nor an endpoint is given for `s3://`, the bucket's region is looked up: the only request that opening may make.
pub fn open(uri: &str, given: &HashMap<String, String>) -> Result<StoreRef> {
    let place = Place::parse(uri)?;
    let options = Options::new(place.shown(), given)?;
    let backend = match place.scheme.as_str() {
        "s3" | "s3a" => s3::backend(&place, &options)?,
        "gs" => google::backend(&place, &options)?,
        "az" | "azure" | "adl" | "abfs" | "abfss" => azure::backend(&place, &options)?,
        other => {
            let message = format!("the scheme {other:?} is not one of an object store");
            return Err(StoreError::unsupported(place.shown(), message));
        }
    };
    let how = ObjectOptions {
        counts_from_the_end: backend.counts_from_the_end,
        ..ObjectOptions::default()
    };
    let adapter = ObjectAdapter::new(uri, backend.store, &place.prefix, how)?;
    Ok(Arc::new(
        adapter
            .with_pages(backend.pages, backend.ordered)
            .hiding(backend.secrets),
    ))
}

/// The cached backend of the same settings, or a new one. A cached one keeps its connections and tokens.
pub(super) fn shared<K: AsRef<str>>(
    kind: &str,
    place: &Place,
    known: &HashMap<K, String>,
    more: &[String],
    make: impl FnOnce() -> Result<Backend>,
) -> Result<Backend> {
    let mut key: Vec<String> = known
        .iter()
        .map(|(key, value)| format!("{}={value}", key.as_ref()))
        .collect();
    key.sort_unstable();
    key.push(format!("{kind} {}", place.authority));
    key.extend_from_slice(more);
    // In a forked child the lock may be held for ever by a thread that does not exist there: then nothing is cached, and nothing waits.
    if let Ok(shared) = SHARED.try_lock() {
        if let Some((_, backend)) = shared.iter().find(|(kept, _)| *kept == key) {
            return Ok(backend.clone());
        }
    }
    let backend = make()?;
    if let Ok(mut shared) = SHARED.try_lock() {
        if shared.len() >= KEPT {
            shared.remove(0);
        }
        shared.push((key, backend.clone()));
    }
    Ok(backend)
}

/// An error of `object_store` while a store is being built.
pub(super) fn not_built(place: &Place, secrets: &Secrets, error: &object_store::Error) -> StoreError {
    let message = secrets.hide(&error.to_string());
    StoreError::invalid_argument(place.shown(), format!("storage options do not make a store: {message}"))
}
