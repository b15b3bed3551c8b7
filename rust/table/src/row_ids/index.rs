//! The row-id index: from a stable row id to the row's address, over the segments of all sequences of a version, sorted by their ids.
//!
//! Ranges are not expanded: the index takes as much memory as the segments. Which copy of an updated row is live is decided by the deletion
//! files, which are read only for the fragments that a look-up finds. See [`crate::read::locate`].

use std::sync::OnceLock;

use esker_store::kept;

use super::bitmap::RankTable;
use super::cover::Cover;
use super::segment::Segment;
use super::sequence::RowIdSequence;
use crate::error::{Result, TableError};

/// A row that a fragment lists under an id; it may be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// The fragment's index in its manifest.
    pub fragment: u32,
    /// The row's offset in the fragment's files.
    pub offset: u32,
}

/// All ids of one version.
#[derive(Debug, Default)]
pub struct RowIdIndex {
    entries: Vec<Entry>,
    cover: Cover,
}

#[derive(Debug)]
struct Entry {
    fragment: u32,
    /// The offset of the segment's first row.
    start: u32,
    segment: Segment,
    ranks: RankTable,
    /// For an unsorted array, its positions sorted by id; built on the first look-up.
    by_value: OnceLock<Vec<u32>>,
}

/// Collects the sequences of a version's fragments.
#[derive(Debug, Default)]
pub struct RowIdIndexBuilder {
    entries: Vec<((u64, u64), Entry)>,
}

impl RowIdIndexBuilder {
    /// Adds the ids of the fragment at an index of the manifest. `what` is for errors.
    pub fn push(&mut self, fragment: u32, ids: &RowIdSequence, what: &str) -> Result<()> {
        if ids.len() > u64::from(u32::MAX) {
            let message = format!("expected at most 2^32 row ids, found {}", ids.len());
            return Err(TableError::corrupt(what, message));
        }
        for (segment, start) in ids.starts() {
            let Some(bounds) = segment.bounds() else { continue };
            let entry = Entry {
                fragment,
                start: u32::try_from(start).unwrap_or(u32::MAX),
                ranks: match segment {
                    Segment::Bitmap { bitmap, .. } => RankTable::new(bitmap),
                    _ => RankTable::default(),
                },
                segment: segment.clone(),
                by_value: OnceLock::new(),
            };
            self.entries.push((bounds, entry));
        }
        Ok(())
    }

    /// The index.
    pub fn build(mut self) -> RowIdIndex {
        self.entries.sort_by_key(|(bounds, _)| *bounds);
        let bounds: Vec<(u64, u64)> = self.entries.iter().map(|(bounds, _)| *bounds).collect();
        RowIdIndex {
            cover: Cover::new(&bounds),
            entries: self.entries.into_iter().map(|(_, entry)| entry).collect(),
        }
    }
}

impl RowIdIndex {
    /// Calls `found` with each row that a fragment lists under `id`, in no order.
    pub fn for_each(&self, id: u64, mut found: impl FnMut(Candidate)) {
        self.cover.for_each(id, |place| {
            let candidate = self.entries.get(place).and_then(|entry| entry.find(id));
            candidate.into_iter().for_each(&mut found);
        });
    }

    /// The rows that fragments list under `id`, those of later fragments first: an update moves rows to a new fragment.
    pub fn candidates(&self, id: u64, out: &mut Vec<Candidate>) {
        out.clear();
        self.for_each(id, |candidate| out.push(candidate));
        if out.len() > 1 {
            out.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// How many segments there are.
    pub fn num_segments(&self) -> usize {
        self.entries.len()
    }

    /// About how many bytes the index takes beside the encoded segments, which it shares with the manifest.
    pub fn memory(&self) -> usize {
        let of = |entry: &Entry| {
            let order = entry
                .by_value
                .get()
                .map_or(0, |order| order.capacity() * size_of::<u32>());
            size_of::<Entry>() + entry.ranks.memory() + order
        };
        self.entries.iter().map(of).sum::<usize>() + self.cover.memory()
    }
}

impl Entry {
    fn find(&self, id: u64) -> Option<Candidate> {
        let place = match &self.segment {
            Segment::Bitmap { start, bitmap } => {
                let bit = id.checked_sub(*start)?;
                bitmap.contains(bit).then(|| self.ranks.rank(bitmap, bit))?
            }
            Segment::Array(array) => {
                let value = |place: u32| array.get(place as usize).unwrap_or(u64::MAX);
                let order = kept(&self.by_value, || {
                    let mut order: Vec<u32> = (0..u32::try_from(array.len()).unwrap_or(u32::MAX)).collect();
                    order.sort_unstable_by_key(|place| (value(*place), *place));
                    order
                });
                let found = order.partition_point(|place| value(*place) < id);
                let place = order.get(found).copied()?;
                (value(place) == id).then_some(u64::from(place))?
            }
            segment => segment.position(id)?,
        };
        Some(Candidate {
            fragment: self.fragment,
            offset: self.start.checked_add(u32::try_from(place).ok()?)?,
        })
    }
}
