//! Stores in memory: named ones that the whole process shares, and private ones.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use object_store::memory::InMemory;

use crate::error::Result;
use crate::object::{ObjectAdapter, ObjectOptions};

static NAMED: LazyLock<Mutex<HashMap<String, Arc<InMemory>>>> = LazyLock::new(Mutex::default);

/// The process's memory store of that name, below a prefix. The first call creates it, and it lives as long as the process; a forked child
/// has a copy of its own.
pub fn named(uri: &str, name: &str, prefix: &str) -> Result<ObjectAdapter> {
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let inner = named.entry(name.to_owned()).or_default().clone();
    ObjectAdapter::new(uri, inner, prefix, options())
}

/// A private memory store, which has no name.
pub fn private() -> Result<ObjectAdapter> {
    ObjectAdapter::new("memory://", Arc::new(InMemory::new()), "", options())
}

fn options() -> ObjectOptions {
    // Slices of memory cost nothing: only overlapping ranges are joined, and nothing waits.
    ObjectOptions {
        coalesce_gap: 0,
        coalesce_limit: 0,
        replies_may_be_lost: false,
        ..ObjectOptions::default()
    }
}
