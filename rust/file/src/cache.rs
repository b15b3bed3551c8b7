//! What open files keep in memory for later reads, within a limit of bytes that all of them share.
//!
//! An entry belongs to an owner (an open file, or the files of a store) and goes with it. Where the limit is reached, entries make room that
//! were not used since the hand last passed them (the clock algorithm).
//!
//! A fork copies memory but no threads: a lock that another thread holds in that moment is never given back in the child. There a lock that
//! is taken counts as a miss, which costs a read and no more.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

/// The default limit in bytes.
pub const DEFAULT_CACHE_BYTES: usize = 256 * 1024 * 1024;

/// A value that is kept.
type Kept = Arc<dyn Any + Send + Sync>;

/// What an entry is to its owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Slot {
    /// The state of a page of a column.
    Page(usize, usize),
    /// The dictionary of a page of a column.
    Dictionary(usize, usize),
    /// The zone map of a column.
    Zones(usize),
    /// An open file, by its path and its size as it was noted.
    File(String, Option<u64>),
    /// A decoded deletion file, by its path.
    Deletions(String),
}

/// A cache with a limit of bytes.
pub struct ReadCache {
    limit: usize,
    kind: Kind,
    process: u32,
    owners: AtomicU64,
    state: Mutex<State>,
}

/// What its entries are read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// For later reads at any place.
    AnyRead,
    /// For a pass that comes back to the newest entry at once, which is kept in any case.
    Newest,
    /// For a pass that comes to each page once, part by part: what it has passed is not kept.
    Pass,
}

#[derive(Default)]
struct State {
    entries: HashMap<u64, HashMap<Slot, Entry>>,
    /// Every entry once, and what is left of some that are gone.
    hand: VecDeque<(u64, Slot, u64)>,
    count: usize,
    bytes: usize,
    stamp: u64,
}

struct Entry {
    value: Kept,
    bytes: usize,
    used: bool,
    /// Tells an entry from another one before it in the same place.
    stamp: u64,
}

impl ReadCache {
    /// An empty cache of at most `limit` bytes.
    pub fn new(limit: usize) -> Arc<ReadCache> {
        ReadCache::with(limit, Kind::AnyRead)
    }

    /// The same, but the newest entry is kept in any case: for a pass that comes back to it at once.
    pub fn keeping_the_newest(limit: usize) -> Arc<ReadCache> {
        ReadCache::with(limit, Kind::Newest)
    }

    /// The same for the pages of a pass, over all of its files: each page is read once, but part by part, and what its parts have in common
    /// is not to be read and decoded for each of them.
    pub fn for_one_pass(limit: usize) -> Arc<ReadCache> {
        ReadCache::with(limit, Kind::Pass)
    }

    fn with(limit: usize, kind: Kind) -> Arc<ReadCache> {
        Arc::new(ReadCache {
            limit,
            kind,
            process: std::process::id(),
            owners: AtomicU64::new(0),
            state: Mutex::default(),
        })
    }

    /// The most bytes that it keeps.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The bytes that it keeps.
    pub fn num_bytes(&self) -> usize {
        self.lock().map_or(0, |state| state.bytes)
    }

    /// The entries that it keeps.
    pub fn num_entries(&self) -> usize {
        self.lock().map_or(0, |state| state.count)
    }

    /// A new owner of entries.
    pub fn owner(self: &Arc<Self>) -> Owner {
        Owner {
            cache: self.clone(),
            id: self.owners.fetch_add(1, Relaxed),
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        if std::process::id() == self.process {
            self.state.lock().ok()
        } else {
            self.state.try_lock().ok()
        }
    }

    fn get(&self, owner: u64, slot: &Slot) -> Option<Kept> {
        let mut state = self.lock()?;
        let entry = state.entries.get_mut(&owner)?.get_mut(slot)?;
        entry.used = true;
        Some(entry.value.clone())
    }

    fn put(&self, owner: u64, slot: Slot, value: Kept, bytes: usize) {
        if bytes > self.limit && self.kind != Kind::Newest {
            return;
        }
        // Dropped after the lock is given back: an open file removes its own entries when it is dropped.
        let mut gone = Vec::new();
        if let Some(mut state) = self.lock() {
            gone.extend(state.remove(owner, &slot));
            state.make_room(self.limit.saturating_sub(bytes), &mut gone);
            state.insert(owner, slot, value, bytes);
        }
        drop(gone);
    }

    fn remove(&self, owner: u64, slot: &Slot) {
        let gone = self.lock().and_then(|mut state| {
            let gone = state.remove(owner, slot);
            state.tidy();
            gone
        });
        drop(gone);
    }

    fn forget(&self, owner: u64) {
        let mut gone = None;
        if let Some(mut state) = self.lock() {
            gone = state.entries.remove(&owner);
            for entry in gone.iter().flat_map(HashMap::values) {
                state.bytes = state.bytes.saturating_sub(entry.bytes);
                state.count = state.count.saturating_sub(1);
            }
            state.tidy();
        }
        drop(gone);
    }
}

impl State {
    fn insert(&mut self, owner: u64, slot: Slot, value: Kept, bytes: usize) {
        self.stamp = self.stamp.wrapping_add(1);
        let entry = Entry {
            value,
            bytes,
            // A file's pages go with it: they make room first.
            used: matches!(slot, Slot::File(..)),
            stamp: self.stamp,
        };
        self.hand.push_back((owner, slot.clone(), self.stamp));
        self.entries.entry(owner).or_default().insert(slot, entry);
        self.bytes = self.bytes.saturating_add(bytes);
        self.count += 1;
        self.tidy();
    }

    fn remove(&mut self, owner: u64, slot: &Slot) -> Option<Entry> {
        let own = self.entries.get_mut(&owner)?;
        let entry = own.remove(slot)?;
        if own.is_empty() {
            self.entries.remove(&owner);
        }
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        self.count = self.count.saturating_sub(1);
        Some(entry)
    }

    /// Removes entries until no more than `most` bytes are kept.
    fn make_room(&mut self, most: usize, gone: &mut Vec<Entry>) {
        while self.bytes > most {
            let Some((owner, slot, stamp)) = self.hand.pop_front() else {
                return;
            };
            let own = self.entries.get_mut(&owner).and_then(|own| own.get_mut(&slot));
            match own.filter(|entry| entry.stamp == stamp) {
                Some(entry) if entry.used => {
                    entry.used = false;
                    self.hand.push_back((owner, slot, stamp));
                }
                Some(_) => gone.extend(self.remove(owner, &slot)),
                None => {}
            }
        }
    }

    /// Forgets what is left of entries that are gone, once there is more of it than of others.
    fn tidy(&mut self) {
        if self.hand.len() > self.count.saturating_mul(2).saturating_add(64) {
            let entries = &self.entries;
            self.hand.retain(|(owner, slot, stamp)| {
                let entry = entries.get(owner).and_then(|own| own.get(slot));
                entry.is_some_and(|entry| entry.stamp == *stamp)
            });
        }
    }
}

impl fmt::Debug for ReadCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadCache")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// The owner of some entries of a cache, which go with it.
#[derive(Debug)]
pub struct Owner {
    cache: Arc<ReadCache>,
    id: u64,
}

impl Owner {
    /// The cache.
    pub fn cache(&self) -> &Arc<ReadCache> {
        &self.cache
    }

    /// An entry, if it is kept and of this type.
    pub fn get<T: Any + Send + Sync>(&self, slot: &Slot) -> Option<Arc<T>> {
        self.cache.get(self.id, slot)?.downcast().ok()
    }

    /// Keeps a value of about `bytes` bytes, unless it is larger than the whole cache.
    pub fn put<T: Any + Send + Sync>(&self, slot: Slot, value: Arc<T>, bytes: usize) {
        self.cache.put(self.id, slot, value, bytes);
    }

    /// Notes that all of what an entry is needed for was read: a pass does not come back to it.
    pub(crate) fn passed(&self, slot: &Slot) {
        if self.cache.kind == Kind::Pass {
            self.cache.remove(self.id, slot);
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.cache.forget(self.id);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(owner: &Owner, page: usize) -> Option<usize> {
        owner.get::<usize>(&Slot::Page(0, page)).map(|value| *value)
    }

    #[test]
    fn test_what_is_used_stays_and_what_is_not_makes_room() {
        let cache = ReadCache::new(100);
        let owner = cache.owner();
        for page in 0..10 {
            owner.put(Slot::Page(0, page), Arc::new(page), 10);
        }
        assert_eq!((cache.num_bytes(), cache.num_entries()), (100, 10));
        assert_eq!(number(&owner, 0), Some(0));
        for page in 10..19 {
            owner.put(Slot::Page(0, page), Arc::new(page), 10);
        }
        assert_eq!(number(&owner, 0), Some(0));
        assert_eq!(number(&owner, 1), None);
        owner.put(Slot::Page(0, 99), Arc::new(99_usize), 101);
        assert_eq!(number(&owner, 99), None);
        assert_eq!(cache.num_bytes(), 100);
    }

    #[test]
    fn test_entries_go_with_their_owner_and_owners_do_not_meet() {
        let cache = ReadCache::new(1000);
        let (one, other) = (cache.owner(), cache.owner());
        one.put(Slot::Page(0, 0), Arc::new(1_usize), 10);
        other.put(Slot::Page(0, 0), Arc::new(2_usize), 20);
        assert_eq!((number(&one, 0), number(&other, 0)), (Some(1), Some(2)));
        assert!(one.get::<String>(&Slot::Page(0, 0)).is_none());
        drop(one);
        assert_eq!((cache.num_bytes(), cache.num_entries()), (20, 1));
    }

    #[test]
    fn test_an_entry_that_owns_others_may_make_room() {
        let cache = ReadCache::new(30);
        let files = cache.owner();
        let file = Arc::new(cache.owner());
        file.put(Slot::Page(0, 0), Arc::new(1_usize), 10);
        files.put(Slot::File("a".into(), None), file, 10);
        // It has a second chance, which its pages have not.
        for page in 0..8 {
            files.put(Slot::Page(1, page), Arc::new(page), 10);
        }
        assert_eq!(cache.num_bytes(), 30);
        assert!(files.get::<Owner>(&Slot::File("a".into(), None)).is_none());
    }

    #[test]
    fn test_a_pass_keeps_what_it_is_at_and_others_keep_what_they_have_read() {
        for (cache, left) in [(ReadCache::for_one_pass(100), None), (ReadCache::new(100), Some(1))] {
            let owner = cache.owner();
            owner.put(Slot::Page(0, 0), Arc::new(1_usize), 10);
            assert_eq!(number(&owner, 0), Some(1));
            owner.passed(&Slot::Page(0, 0));
            assert_eq!(number(&owner, 0), left);
            assert_eq!(cache.num_entries(), usize::from(left.is_some()));
        }
    }

    proptest! {
        #[test]
        fn test_the_limit_holds_and_the_counts_are_right(
            limit in 0_usize..200,
            steps in prop::collection::vec((0_usize..4, 0_usize..20, 0_usize..60), 0..200),
        ) {
            let cache = ReadCache::new(limit);
            let mut owners: Vec<Owner> = (0..4).map(|_| cache.owner()).collect();
            for (owner, page, bytes) in steps {
                match bytes {
                    0..5 => owners[owner] = cache.owner(),
                    5..20 => prop_assert!(number(&owners[owner], page).is_none_or(|found| found == page)),
                    _ => owners[owner].put(Slot::Page(0, page), Arc::new(page), bytes),
                }
                prop_assert!(cache.num_bytes() <= limit);
                let state = cache.state.lock().unwrap();
                let held = || state.entries.values().flat_map(HashMap::values);
                prop_assert_eq!(held().map(|entry| entry.bytes).sum::<usize>(), state.bytes);
                prop_assert_eq!(held().count(), state.count);
                prop_assert!(state.hand.len() <= state.count * 2 + 64);
            }
        }
    }
}
