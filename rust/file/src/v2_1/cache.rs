//! A bounded cache of page states.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use arrow_schema::DataType;

use super::state::PageState;

/// The most bytes of the states of all open files, besides those that each file may cache in any case.
const SHARED_BYTES: usize = 256 * 1024 * 1024;

/// Bytes that the states of one file may always take, however many files are open.
const OWN_BYTES: usize = 512 * 1024;

/// What all open files keep.
static KEPT_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A column and a page of it.
type Key = (usize, usize);

/// The states of a file's pages; the oldest makes room for a new one.
#[derive(Debug)]
pub(crate) enum PageCache {
    /// For a file that may be read again at any place.
    Own(Mutex<Kept>),
    /// For one of the files of a pass, with its number there.
    OfPass(usize, PassCache),
}

#[derive(Debug, Default)]
pub(crate) struct Kept {
    states: HashMap<Key, (Arc<PageState>, usize)>,
    order: VecDeque<Key>,
    bytes: usize,
}

/// The states of the pages that a pass is at, over all of its files: each page is read once, but part by part, and what its parts have in
/// common is not to be read and decoded for each of them.
#[derive(Debug, Clone)]
pub struct PassCache(Arc<Pass>);

#[derive(Debug)]
struct Pass {
    files: AtomicUsize,
    limit: usize,
    kept: Mutex<KeptOfPass>,
}

#[derive(Debug, Default)]
struct KeptOfPass {
    states: HashMap<(usize, Key), (Arc<PageState>, usize)>,
    order: VecDeque<(usize, Key)>,
    bytes: usize,
}

impl PassCache {
    /// A cache of at most `bytes`.
    pub fn new(bytes: u64) -> PassCache {
        PassCache(Arc::new(Pass {
            files: AtomicUsize::new(0),
            limit: usize::try_from(bytes).unwrap_or(usize::MAX),
            kept: Mutex::default(),
        }))
    }

    fn put(&self, file: usize, key: Key, state: &Arc<PageState>) {
        let Ok(mut kept) = self.0.kept.lock() else { return };
        let (key, bytes) = ((file, key), state.memory());
        if bytes > self.0.limit {
            return;
        }
        match kept.states.insert(key, (state.clone(), bytes)) {
            Some((_, before)) => kept.bytes = kept.bytes.saturating_sub(before),
            None => kept.order.push_back(key),
        }
        kept.bytes = kept.bytes.saturating_add(bytes);
        while kept.bytes > self.0.limit {
            let Some(oldest) = kept.order.pop_front() else { break };
            kept.forget(&oldest);
        }
    }
}

impl KeptOfPass {
    fn forget(&mut self, key: &(usize, Key)) {
        if let Some((_, bytes)) = self.states.remove(key) {
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        // A pass may have any number of pages: those that it has left behind are not remembered.
        while self
            .order
            .front()
            .is_some_and(|oldest| !self.states.contains_key(oldest))
        {
            self.order.pop_front();
        }
    }
}

impl Default for PageCache {
    fn default() -> PageCache {
        PageCache::Own(Mutex::default())
    }
}

impl PageCache {
    /// The cache of the next file of a pass.
    pub(crate) fn of_pass(pass: &PassCache) -> PageCache {
        PageCache::OfPass(pass.0.files.fetch_add(1, Relaxed), pass.clone())
    }

    /// The state of a page that is read as `data_type`.
    pub(crate) fn get(&self, column: usize, page: usize, data_type: &DataType) -> Option<Arc<PageState>> {
        let state = match self {
            PageCache::Own(kept) => kept.lock().ok()?.states.get(&(column, page))?.0.clone(),
            PageCache::OfPass(file, pass) => pass.0.kept.lock().ok()?.states.get(&(*file, (column, page)))?.0.clone(),
        };
        (state.data_type == *data_type).then_some(state)
    }

    /// Keeps the state of a page.
    pub(crate) fn put(&self, column: usize, page: usize, state: &Arc<PageState>) {
        let kept = match self {
            PageCache::Own(kept) => kept,
            PageCache::OfPass(file, pass) => return pass.put(*file, (column, page), state),
        };
        let Ok(mut kept) = kept.lock() else { return };
        let (key, bytes) = ((column, page), state.memory());
        if bytes > SHARED_BYTES / 8 {
            return;
        }
        match kept.states.insert(key, (state.clone(), bytes)) {
            Some((_, before)) => kept.give_back(before),
            None => kept.order.push_back(key),
        }
        kept.bytes = kept.bytes.saturating_add(bytes);
        KEPT_BYTES.fetch_add(bytes, Relaxed);
        while kept.bytes > OWN_BYTES && KEPT_BYTES.load(Relaxed) > SHARED_BYTES {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some((_, bytes)) = kept.states.remove(&oldest) {
                kept.give_back(bytes);
            }
        }
    }

    /// Notes that rows of a page were read, up to `end`: a pass comes to them once.
    pub(crate) fn passed(&self, column: usize, page: usize, end: u64, num_rows: u64) {
        let PageCache::OfPass(file, pass) = self else { return };
        if end < num_rows {
            return;
        }
        if let Ok(mut kept) = pass.0.kept.lock() {
            kept.forget(&(*file, (column, page)));
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
