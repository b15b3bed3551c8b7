//! Page states that later reads use again, as many as fit.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use arrow_schema::DataType;

use super::state::PageState;

/// Bytes that the states of one open file take at the most.
const KEPT_BYTES: usize = 64 * 1024 * 1024;

/// A column and a page of it.
type Key = (usize, usize);

/// The states of a file's pages; the oldest makes room for a new one.
#[derive(Debug, Default)]
pub(crate) struct PageCache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    states: HashMap<Key, (Arc<PageState>, usize)>,
    order: VecDeque<Key>,
    bytes: usize,
}

impl PageCache {
    /// The state of a page that is read as `data_type`.
    pub(crate) fn get(&self, column: usize, page: usize, data_type: &DataType) -> Option<Arc<PageState>> {
        let kept = self.0.lock().ok()?;
        let (state, _) = kept.states.get(&(column, page))?;
        (state.data_type == *data_type).then(|| state.clone())
    }

    /// Keeps the state of a page.
    pub(crate) fn put(&self, column: usize, page: usize, state: &Arc<PageState>) {
        let Ok(mut kept) = self.0.lock() else { return };
        let (key, bytes) = ((column, page), state.memory());
        if bytes > KEPT_BYTES / 2 {
            return;
        }
        match kept.states.insert(key, (state.clone(), bytes)) {
            Some((_, before)) => kept.bytes = kept.bytes.saturating_sub(before),
            None => kept.order.push_back(key),
        }
        kept.bytes = kept.bytes.saturating_add(bytes);
        while kept.bytes > KEPT_BYTES {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some((_, bytes)) = kept.states.remove(&oldest) {
                kept.bytes = kept.bytes.saturating_sub(bytes);
            }
        }
    }
}
