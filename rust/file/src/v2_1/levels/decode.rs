//! The levels of a page's wanted rows.

use std::ops::Range;

use esker_codec::levels::{count, largest, within, Bounds, Level, WORD};

use super::layers::Layers;
use crate::error::Result;
use crate::v2_1::page::PageId;

/// Levels of some rows: an entry for each value, null list and empty list.
#[derive(Debug, Default, Clone)]
pub(crate) struct Levels {
    /// Little-endian u16, one an entry; none where there are no lists.
    pub(crate) rep: Option<Vec<u8>>,
    /// Little-endian u16, one an entry; none where nothing is null or empty.
    pub(crate) def: Option<Vec<u8>>,
    /// Entries.
    pub(crate) len: usize,
}

/// A level at an entry.
fn level(bytes: &[u8; 2]) -> u16 {
    u16::from_le_bytes(*bytes)
}

/// The levels in stored form as numbers.
pub(crate) fn iter(stored: &[u8]) -> impl Iterator<Item = u16> + '_ {
    stored.as_chunks::<2>().0.iter().map(level)
}

impl Levels {
    pub(crate) fn new(has_rep: bool, has_def: bool) -> Levels {
        Levels {
            rep: has_rep.then(Vec::new),
            def: has_def.then(Vec::new),
            len: 0,
        }
    }

    /// Makes room for `entries` more. A wish, not a need.
    pub(crate) fn expect(&mut self, entries: usize) {
        for levels in [&mut self.rep, &mut self.def].into_iter().flatten() {
            // Where there is no memory for them now, there is none when they come.
            let _ = levels.try_reserve(entries.saturating_mul(2));
        }
    }

    /// Forgets all entries, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        for levels in [&mut self.rep, &mut self.def].into_iter().flatten() {
            levels.clear();
        }
        self.len = 0;
    }

    /// Adds one entry.
    pub(crate) fn push(&mut self, rep: u16, def: u16) {
        for (to, level) in [(&mut self.rep, rep), (&mut self.def, def)] {
            if let Some(to) = to {
                to.extend_from_slice(&level.to_le_bytes());
            }
        }
        self.len = self.len.saturating_add(1);
    }

    /// Adds entries of others.
    pub(crate) fn append(&mut self, from: &Levels, entries: Range<usize>) {
        let bytes = entries.start.saturating_mul(2)..entries.end.saturating_mul(2);
        for (to, from) in [(&mut self.rep, &from.rep), (&mut self.def, &from.def)] {
            if let (Some(to), Some(from)) = (to, from) {
                to.extend_from_slice(from.get(bytes.clone()).unwrap_or_default());
            }
        }
        self.len = self.len.saturating_add(entries.len());
    }

    /// Refuses levels beyond those of the layers.
    pub(crate) fn check(&self, at: &PageId, layers: &Layers) -> Result<()> {
        let sides = [
            (&self.rep, layers.max_rep, "repetition"),
            (&self.def, layers.max_def, "definition"),
        ];
        for (levels, max, what) in sides {
            let Some(levels) = levels else { continue };
            if levels.len() != self.len.saturating_mul(2) {
                return Err(at.corrupt(format!(
                    "expected {} {what} levels, found {}",
                    self.len,
                    levels.len() / 2
                )));
            }
            let found = largest(levels.as_chunks().0);
            if found > max {
                return Err(at.corrupt(format!("expected {what} levels up to {max}, found {found}")));
            }
        }
        Ok(())
    }

    /// Values among `entries`: those that no null or empty list stands for.
    pub(crate) fn visible(&self, layers: &Layers, entries: Range<usize>) -> usize {
        let Some(def) = &self.def else {
            return entries.len();
        };
        let bytes = entries.start.saturating_mul(2)..entries.end.saturating_mul(2);
        let def = def.get(bytes).unwrap_or_default().as_chunks().0;
        let most = layers.max_visible();
        count(&within(def.len(), None, Some(def), Bounds { least: 0, most }))
    }

    /// The repetition levels.
    pub(crate) fn rep(&self) -> Option<&[Level]> {
        self.rep.as_deref().map(|rep| rep.as_chunks().0)
    }

    /// The definition levels.
    pub(crate) fn def(&self) -> Option<&[Level]> {
        self.def.as_deref().map(|def| def.as_chunks().0)
    }
}

/// Entries that are looked at together where rows are searched.
const BLOCK: usize = 1024;

/// Where rows start among entries: for each of the sorted `bounds` (numbers of rows) the entry at which it starts, and the values before
/// that entry. `first_row` is the row that the first start belongs to; bounds before it stand for the first entry, those beyond for the end.
pub(crate) fn row_bounds(levels: &Levels, layers: &Layers, first_row: u64, bounds: &[u64]) -> Vec<(usize, usize)> {
    let mut places = Vec::with_capacity(bounds.len());
    let mut wanted = bounds.iter().copied().peekable();
    while wanted.next_if(|bound| *bound < first_row).is_some() {
        places.push((0, 0));
    }
    let Some(rep) = &levels.rep else {
        // Every entry is a row.
        places.extend(wanted.map(|bound| {
            let entry = usize::try_from(bound - first_row).unwrap_or(usize::MAX).min(levels.len);
            (entry, levels.visible(layers, 0..entry))
        }));
        return places;
    };
    let (rep, def) = (rep.as_chunks().0, levels.def());
    let rows = Bounds {
        least: layers.max_rep,
        most: u16::MAX,
    };
    let seen = Bounds {
        least: 0,
        most: layers.max_visible(),
    };
    let (mut row, mut values) = (first_row, 0_usize);
    for (start, rep) in (0..).step_by(BLOCK).zip(rep.chunks(BLOCK)) {
        if wanted.peek().is_none() {
            return places;
        }
        let def = def.map(|def| def.get(start..).unwrap_or_default());
        let def = def.map(|def| def.get(..rep.len()).unwrap_or(def));
        let (starts, visible) = (
            within(rep.len(), Some(rep), None, rows),
            within(rep.len(), None, def, seen),
        );
        for ((start, starts), visible) in (start..).step_by(WORD).zip(starts).zip(visible) {
            let mut left = starts;
            while let Some(bound) = wanted.peek() {
                // Rows from `row` on start at the bits that are left.
                let skipped = bound.saturating_sub(row);
                if skipped >= u64::from(left.count_ones()) {
                    row = row.saturating_add(u64::from(left.count_ones()));
                    break;
                }
                for _ in 0..skipped {
                    left &= left.wrapping_sub(1);
                }
                row = row.saturating_add(skipped);
                let bit = left.trailing_zeros();
                let before = visible & (1_u64 << bit).wrapping_sub(1);
                places.push((start + bit as usize, values + before.count_ones() as usize));
                wanted.next();
            }
            values += visible.count_ones() as usize;
        }
    }
    places.extend(wanted.map(|_| (levels.len, values)));
    places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::version::FileVersion;

    /// The same, entry by entry.
    fn plain(levels: &Levels, layers: &Layers, first_row: u64, bounds: &[u64]) -> Vec<(usize, usize)> {
        let rep: Vec<u16> = iter(levels.rep.as_deref().unwrap()).collect();
        let def = levels
            .def
            .as_deref()
            .map_or(vec![0; rep.len()], |def| iter(def).collect());
        let values = |entry: usize| def[..entry].iter().filter(|def| **def <= layers.max_visible()).count();
        let starts: Vec<usize> = (0..rep.len()).filter(|entry| rep[*entry] == layers.max_rep).collect();
        let place = |bound: &u64| {
            if *bound < first_row {
                return (0, 0);
            }
            let entry = starts.get((bound - first_row) as usize).copied().unwrap_or(rep.len());
            (entry, values(entry))
        };
        bounds.iter().map(place).collect()
    }

    proptest! {
        #[test]
        fn test_rows_are_found_where_they_start(
            entries in prop::collection::vec((0_u16..9, 0_u16..12), 0..2500),
            has_def: bool,
            first_row in 0_u64..5,
            bounds in prop::collection::vec(0_u64..900, 0..6),
        ) {
            let at = PageId { path: "a.lance".into(), version: FileVersion::V2_1, column: 0, number: 0 };
            let layers = Layers::new(&at, if has_def { &[3, 6] } else { &[1, 2] }).unwrap();
            let stored = |level: fn(&(u16, u16)) -> u16| entries.iter().flat_map(|e| level(e).to_le_bytes()).collect::<Vec<u8>>();
            let levels = Levels {
                rep: Some(stored(|e| u16::from(e.0 == 0))),
                def: has_def.then(|| stored(|e| if e.1 > 3 { 0 } else { e.1 })),
                len: entries.len(),
            };
            let mut bounds = bounds;
            bounds.sort_unstable();
            prop_assert_eq!(row_bounds(&levels, &layers, first_row, &bounds), plain(&levels, &layers, first_row, &bounds));
        }
    }
}
