//! A bounded cache of page states.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

use arrow_schema::DataType;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::state::PageState;

/// The most bytes of the states of all open files, besides those that each file may cache in any case.
const SHARED_BYTES: usize = 256 * 1024 * 1024;

/// Bytes that the states of one file may always take, however many files are open.
const OWN_BYTES: usize = 512 * 1024;

/// Bytes that the states of a file take that is read once.
const ONE_PASS_BYTES: usize = 64 * 1024;

/// What all open files keep.
static KEPT_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A column and a page of it.
type Key = (usize, usize);

/// The states of a file's pages; the oldest makes room for a new one.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    kept: Mutex<Kept>,
    turns: Mutex<HashMap<Key, Weak<AsyncMutex<()>>>>,
}

/// Held while a state is made that others would make as well.
pub(crate) type Turn = OwnedMutexGuard<()>;

#[derive(Debug, Default)]
struct Kept {
    states: HashMap<Key, (Arc<PageState>, usize)>,
    order: VecDeque<Key>,
    bytes: usize,
    /// Whether pages are read once, so that hardly any is kept.
    reads_once: bool,
}

impl PageCache {
    /// A cache for a reader that comes to each page once: it keeps what the next part of a page needs, and no more.
    pub(crate) fn for_one_pass() -> PageCache {
        PageCache {
            kept: Mutex::new(Kept {
                states: HashMap::new(),
                order: VecDeque::new(),
                bytes: 0,
                reads_once: true,
            }),
            turns: Mutex::default(),
        }
    }

    /// The state of a page that is read as `data_type`.
    pub(crate) fn get(&self, column: usize, page: usize, data_type: &DataType) -> Option<Arc<PageState>> {
        let kept = self.kept.lock().ok()?;
        let (state, _) = kept.states.get(&(column, page))?;
        (state.data_type == *data_type).then(|| state.clone())
    }

    /// Waits until nobody makes the states of some pages, which are sorted, and keeps others from it: they will find them in the cache.
    /// Whoever reads a page once waits for nobody, as nothing may be kept.
    pub(crate) async fn turns(&self, pages: &[(usize, usize)]) -> Vec<Turn> {
        if pages.is_empty() || self.kept.lock().is_ok_and(|kept| kept.reads_once) {
            return Vec::new();
        }
        let mut turns = Vec::with_capacity(pages.len());
        for page in pages {
            let lock = {
                let Ok(mut known) = self.turns.lock() else { continue };
                known.retain(|_, lock| lock.strong_count() > 0);
                match known.get(page).and_then(Weak::upgrade) {
                    Some(lock) => lock,
                    None => {
                        let lock = Arc::new(AsyncMutex::new(()));
                        known.insert(*page, Arc::downgrade(&lock));
                        lock
                    }
                }
            };
            turns.push(lock.lock_owned().await);
        }
        turns
    }

    /// Keeps the state of a page.
    pub(crate) fn put(&self, column: usize, page: usize, state: &Arc<PageState>) {
        let Ok(mut kept) = self.kept.lock() else { return };
        let (key, bytes) = ((column, page), state.memory());
        if bytes > SHARED_BYTES / 8 || (kept.reads_once && bytes > ONE_PASS_BYTES) {
            return;
        }
        match kept.states.insert(key, (state.clone(), bytes)) {
            Some((_, before)) => kept.give_back(before),
            None => kept.order.push_back(key),
        }
        kept.bytes = kept.bytes.saturating_add(bytes);
        KEPT_BYTES.fetch_add(bytes, Relaxed);
        while (kept.bytes > OWN_BYTES && KEPT_BYTES.load(Relaxed) > SHARED_BYTES)
            || (kept.reads_once && kept.bytes > ONE_PASS_BYTES)
        {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some((_, bytes)) = kept.states.remove(&oldest) {
                kept.give_back(bytes);
            }
        }
    }
}

impl Kept {
    fn give_back(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        KEPT_BYTES.fetch_sub(bytes, Relaxed);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT_BYTES.fetch_sub(self.bytes, Relaxed);
    }
}
