//! The levels of a page's wanted rows.

use std::ops::Range;

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

/// How many of some levels are as asked. Counted in blocks, so that many are compared at a time.
pub(crate) fn count_of(stored: &[u8], is: impl Fn(u16) -> bool) -> usize {
    let blocks = stored.as_chunks::<2>().0.chunks(1024);
    let in_block = |block: &[[u8; 2]]| {
        let count = block
            .iter()
            .fold(0_u16, |sum, stored| sum.wrapping_add(u16::from(is(level(stored)))));
        usize::from(count)
    };
    blocks.map(in_block).sum()
}

/// The same of entries with both levels.
pub(crate) fn count_of_both(rep: &[u8], def: &[u8], is: impl Fn(u16, u16) -> bool) -> usize {
    let blocks = rep
        .as_chunks::<2>()
        .0
        .chunks(1024)
        .zip(def.as_chunks::<2>().0.chunks(1024));
    let in_block = |(rep, def): (&[[u8; 2]], &[[u8; 2]])| {
        let both = rep.iter().zip(def);
        let count = both.fold(0_u16, |sum, (rep, def)| {
            sum.wrapping_add(u16::from(is(level(rep), level(def))))
        });
        usize::from(count)
    };
    blocks.map(in_block).sum()
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
            let found = iter(levels).fold(0, u16::max);
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
        let max = layers.max_visible();
        count_of(def.get(bytes).unwrap_or_default(), |level| level <= max)
    }
}

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
    let max_visible = layers.max_visible();
    let (mut row, mut values) = (first_row, 0_usize);
    let mut def = levels.def.as_deref().map(iter);
    for (entry, rep) in iter(rep).enumerate() {
        if rep == layers.max_rep {
            while wanted.next_if(|bound| *bound <= row).is_some() {
                places.push((entry, values));
            }
            if wanted.peek().is_none() {
                return places;
            }
            row += 1;
        }
        let is_visible = match &mut def {
            Some(def) => def.next().is_some_and(|def| def <= max_visible),
            None => true,
        };
        values += usize::from(is_visible);
    }
    places.extend(wanted.map(|_| (levels.len, values)));
    places
}
