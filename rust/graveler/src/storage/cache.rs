//! The memory cache of parts of tables, bounded in bytes. Tables are immutable, so it is never stale.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hashbrown::HashMap;

use crate::id::TableId;
use crate::metarange::Metarange;
use crate::sstable::read::Piece;

/// A cached part of a table.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// Its last bytes, or all bytes.
    Tail(Piece),
    /// One block, uncompressed.
    Block(Bytes),
    /// A metarange, decoded.
    Metarange(Arc<Metarange>),
}

impl Part {
    fn size(&self) -> usize {
        64 + match self {
            Part::Tail(piece) => piece.bytes.len(),
            Part::Block(bytes) => bytes.len(),
            Part::Metarange(metarange) => {
                let keys = metarange
                    .ranges()
                    .iter()
                    .map(|range| range.min_key.len() + range.max_key.len() + 160);
                keys.sum()
            }
        }
    }
}

/// The key of a part: the end, a block by its offset, or the decoded form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    Tail,
    Block(u64),
    Decoded,
}

#[derive(Debug)]
struct Kept {
    part: Part,
    used: u64,
}

#[derive(Debug, Default)]
struct Contents {
    parts: HashMap<(TableId, Place), Kept>,
    bytes: usize,
}

/// The most recently used parts, up to a number of bytes.
#[derive(Debug)]
pub(super) struct Cache {
    capacity: usize,
    clock: AtomicU64,
    contents: Mutex<Contents>,
}

impl Cache {
    pub(super) fn new(capacity: usize) -> Self {
        Cache {
            capacity,
            clock: AtomicU64::new(0),
            contents: Mutex::default(),
        }
    }

    fn at(&self, id: &TableId, place: Place) -> Option<Part> {
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = contents.parts.get_mut(&(id.clone(), place))?;
        kept.used = self.clock.fetch_add(1, Relaxed);
        Some(kept.part.clone())
    }

    fn keep(&self, id: &TableId, place: Place, part: Part) {
        let size = part.size();
        if size > self.capacity {
            return;
        }
        let used = self.clock.fetch_add(1, Relaxed);
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let before = contents.parts.insert((id.clone(), place), Kept { part, used });
        contents.bytes = (contents.bytes + size).saturating_sub(before.map_or(0, |kept| kept.part.size()));
        if contents.bytes > self.capacity {
            contents.evict(self.capacity - self.capacity / 4);
        }
    }

    /// The end of a table, or the block at an offset.
    pub(super) fn get(&self, id: &TableId, block: Option<u64>) -> Option<Part> {
        self.at(id, block.map_or(Place::Tail, Place::Block))
    }

    pub(super) fn put(&self, id: &TableId, block: Option<u64>, part: Part) {
        self.keep(id, block.map_or(Place::Tail, Place::Block), part);
    }

    pub(super) fn metarange(&self, id: &TableId) -> Option<Arc<Metarange>> {
        match self.at(id, Place::Decoded)? {
            Part::Metarange(metarange) => Some(metarange),
            _ => None,
        }
    }

    pub(super) fn put_metarange(&self, id: &TableId, metarange: Arc<Metarange>) {
        self.keep(id, Place::Decoded, Part::Metarange(metarange));
    }
}

impl Contents {
    /// Evicts the least recently used parts, many at a time.
    fn evict(&mut self, target: usize) {
        let mut by_age: Vec<_> = self
            .parts
            .iter()
            .map(|(key, kept)| (kept.used, kept.part.size(), key.clone()))
            .collect();
        by_age.sort_unstable_by_key(|(used, ..)| *used);
        for (_, size, key) in by_age {
            if self.bytes <= target {
                break;
            }
            self.parts.remove(&key);
            self.bytes = self.bytes.saturating_sub(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_the_parts_used_last_stay() {
        let cache = Cache::new(10_000);
        let ids: Vec<_> = (0..20u8).map(|n| TableId::of_hash(&[n; 32])).collect();
        for id in &ids {
            cache.put(id, Some(7), Part::Block(Bytes::from(vec![0; 1000])));
            assert!(cache.get(&ids[0], Some(7)).is_some());
        }
        let kept = ids.iter().filter(|id| cache.get(id, Some(7)).is_some()).count();
        assert!((5..=9).contains(&kept), "{kept}");
        assert!(cache.get(&ids[19], Some(7)).is_some() && cache.get(&ids[19], None).is_none());
        cache.put(&ids[19], None, Part::Block(Bytes::from(vec![0; 20_000])));
        assert!(cache.get(&ids[19], None).is_none());
    }
}
