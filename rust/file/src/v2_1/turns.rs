//! Turns of those who make the same state of a page: the first one makes it, and the others find it in the cache.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// A column and a page of it.
type Key = (usize, usize);

/// Held while a state is made that others would make as well.
pub(crate) type Turn = OwnedMutexGuard<()>;

/// The pages of a file whose states are being made.
#[derive(Debug)]
pub(crate) struct Turns {
    known: Mutex<HashMap<Key, Weak<AsyncMutex<()>>>>,
    process: u32,
}

impl Default for Turns {
    fn default() -> Self {
        Turns {
            known: Mutex::default(),
            process: std::process::id(),
        }
    }
}

impl Turns {
    /// Waits until nobody makes the states of some pages, which are sorted, and keeps others from it. A fork has none to wait for: a turn
    /// that another thread held then is never given back in it.
    pub(crate) async fn take(&self, pages: &[Key]) -> Vec<Turn> {
        if pages.is_empty() || std::process::id() != self.process {
            return Vec::new();
        }
        let mut turns = Vec::with_capacity(pages.len());
        for page in pages {
            let Some(lock) = self.lock(*page) else { continue };
            turns.push(lock.lock_owned().await);
        }
        turns
    }

    fn lock(&self, page: Key) -> Option<Arc<AsyncMutex<()>>> {
        let mut known = self.known.lock().ok()?;
        if let Some(lock) = known.get(&page).and_then(Weak::upgrade) {
            return Some(lock);
        }
        known.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(AsyncMutex::new(()));
        known.insert(page, Arc::downgrade(&lock));
        Some(lock)
    }
}
