//! Shreds arrays to levels: the validity and offsets on the path to a leaf become a repetition and a definition level per entry.
//!
//! An entry is a visible value of the leaf, or a list without items that stands where values would. Its repetition level says which list
//! begins with it (0: none; 1: the innermost; more: one further out). Its definition level says what is missing (0: nothing; 1 and on:
//! a null or an empty list, the further out, the higher).
//!
//! The arrays are walked from the outside in. An entry that a list closed, being null or empty, keeps its place and has no rows below.

use std::borrow::Cow;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_buffer::NullBuffer;
use esker_proto::lance::encodings21::RepDefLayer;

use super::super::path::Step;
use crate::error::{FileError, Result};

/// Marks the definition level of an entry without rows below it, while levels are built.
const CLOSED: u16 = 0x8000;

/// The levels of one page.
#[derive(Debug, Default)]
pub(crate) struct Levels {
    /// A repetition level for each entry; none without lists.
    pub(crate) rep: Option<Vec<u16>>,
    /// A definition level for each entry; none where nothing is missing.
    pub(crate) def: Option<Vec<u16>>,
    /// What the definition levels mean, inner to outer.
    pub(crate) layers: Vec<RepDefLayer>,
    /// The highest repetition level: it begins a row.
    pub(crate) max_rep: u16,
    /// The highest definition level.
    pub(crate) max_def: u16,
    /// The highest definition level of an entry that has a value.
    pub(crate) max_visible: u16,
    /// Entries.
    pub(crate) num_entries: usize,
    /// Entries with a value, null or not.
    pub(crate) num_visible: usize,
    /// Entries where nothing is missing.
    pub(crate) num_valid: usize,
}

impl Levels {
    /// Whether more than `most` entries without a value, such as empty lists, come one after the other.
    pub(crate) fn has_gap_beyond(&self, most: usize) -> bool {
        let Some(def) = self.def.as_ref().filter(|_| self.num_entries - self.num_visible > most) else {
            return false;
        };
        let mut gap = 0_usize;
        def.iter().any(|level| {
            gap = if *level > self.max_visible { gap + 1 } else { 0 };
            gap > most
        })
    }

    /// The definition level of each of the values, 0 where it is there; none where all are.
    pub(crate) fn of_values(&self) -> Option<Cow<'_, [u16]>> {
        let def = self.def.as_ref().filter(|_| self.num_valid < self.num_visible)?;
        if self.num_entries == self.num_visible {
            return Some(Cow::Borrowed(def));
        }
        let visible = def.iter().filter(|level| **level <= self.max_visible);
        Some(Cow::Owned(visible.copied().collect()))
    }
}

/// A page's values, and the levels that stood around them.
pub(crate) struct Shredded {
    pub(crate) levels: Levels,
    /// The visible values, piece by piece.
    pub(crate) leaves: Vec<ArrayRef>,
}

/// What one layer needs levels for.
#[derive(Debug, Clone, Copy, Default)]
struct LayerNeeds {
    is_list: bool,
    nulls: bool,
    empties: bool,
}

impl LayerNeeds {
    fn num_def(self) -> u16 {
        u16::from(self.nulls) + u16::from(self.empties)
    }

    fn meaning(self) -> RepDefLayer {
        match (self.is_list, self.nulls, self.empties) {
            (false, false, _) => RepDefLayer::RepdefAllValidItem,
            (false, true, _) => RepDefLayer::RepdefNullableItem,
            (true, false, false) => RepDefLayer::RepdefAllValidList,
            (true, true, false) => RepDefLayer::RepdefNullableList,
            (true, false, true) => RepDefLayer::RepdefEmptyableList,
            (true, true, true) => RepDefLayer::RepdefNullAndEmptyList,
        }
    }
}

/// One layer with the levels it was given.
#[derive(Debug, Clone, Copy)]
struct LayerLevels {
    rep: u16,
    null: u16,
    empty: u16,
}

/// Takes the arrays of a page apart. Each holds nothing but the way to the leaf, which `path` describes. `alone`: no other page of the
/// column stands beside it.
pub(crate) fn shred(arrays: &[ArrayRef], path: &[Step], alone: bool) -> Result<Shredded> {
    let mut needs = vec![LayerNeeds::default(); path.len() + 1];
    for array in arrays {
        note_needs(array, path, &mut needs)?;
    }
    if !alone {
        // Structs around lists, and fixed-size lists of structs: where some pages say that they are all there and others do not, pylance
        // counts them wrong. What later pages hold is not known yet.
        let mut around_items = false;
        for (need, step) in needs.iter_mut().zip(path).rev() {
            let is_fixed = matches!(step, Step::FixedSizeList(_));
            need.nulls |= is_fixed || (around_items && matches!(step, Step::Struct { nullable: true, .. }));
            around_items |= is_fixed || need.is_list;
        }
    }
    // What is always there within structs that are not: whoever reads it without the structs, as pylance reads a field of one, finds out
    // here that it is null with them. Its own writer says so too, whatever the schema says of nulls.
    let mut null_around = false;
    for need in &mut needs {
        need.nulls |= null_around;
        null_around = need.nulls && !need.is_list;
    }
    let max_rep = count_levels(needs.iter().map(|n| u16::from(n.is_list)))?;
    let max_def = count_levels(needs.iter().map(|n| n.num_def()))?;
    let mut given = Vec::with_capacity(needs.len());
    let (mut rep_left, mut def_left) = (max_rep, max_def);
    for layer in &needs {
        let below = def_left - layer.num_def();
        given.push(LayerLevels {
            rep: rep_left,
            null: below + 1,
            empty: def_left,
        });
        def_left = below;
        rep_left -= u16::from(layer.is_list);
    }
    let innermost_list = needs.iter().rposition(|n| n.is_list);
    let max_visible = match innermost_list {
        Some(at) => needs.iter().skip(at + 1).map(|n| n.num_def()).sum(),
        None => max_def,
    };
    let mut entries = Entries::new(max_rep > 0, max_def > 0);
    let mut leaves = Vec::with_capacity(arrays.len());
    for array in arrays {
        entries.add(array, path, &given, &mut leaves)?;
    }
    let num_visible = leaves.iter().map(|leaf| leaf.len()).sum();
    let num_valid = match &entries.def {
        Some(def) => def.iter().filter(|level| **level == 0).count(),
        None => num_visible,
    };
    let num_entries = match (&entries.rep, &entries.def) {
        (Some(rep), _) => rep.len(),
        (None, Some(def)) => def.len(),
        (None, None) => num_visible,
    };
    let levels = Levels {
        rep: entries.rep,
        def: entries.def,
        layers: needs.iter().rev().map(|n| n.meaning()).collect(),
        max_rep,
        max_def,
        max_visible,
        num_entries,
        num_visible,
        num_valid,
    };
    Ok(Shredded { levels, leaves })
}

fn count_levels(mut counts: impl Iterator<Item = u16>) -> Result<u16> {
    let sum = counts.try_fold(0_u16, u16::checked_add).filter(|sum| *sum < CLOSED);
    sum.ok_or_else(|| FileError::invalid("a column cannot be nested more than 32,000 times"))
}

fn note_needs(array: &ArrayRef, path: &[Step], needs: &mut [LayerNeeds]) -> Result<()> {
    let Some((need, needs)) = needs.split_first_mut() else {
        return Ok(());
    };
    let Some((step, path)) = path.split_first() else {
        need.nulls |= array.logical_null_count() > 0;
        return Ok(());
    };
    need.nulls |= array.null_count() > 0;
    match step {
        Step::Struct { .. } => note_needs(only_child(array)?, path, needs),
        Step::FixedSizeList(_) => note_needs(array.as_fixed_size_list().values(), path, needs),
        Step::List | Step::Map => {
            need.is_list = true;
            let list = array.as_list::<i32>();
            need.empties |= has_empty(list.value_offsets(), list.nulls());
            note_needs(list.values(), path, needs)
        }
        Step::LargeList => {
            need.is_list = true;
            let list = array.as_list::<i64>();
            need.empties |= has_empty(list.value_offsets(), list.nulls());
            note_needs(list.values(), path, needs)
        }
    }
}

fn only_child(array: &ArrayRef) -> Result<&ArrayRef> {
    array
        .as_struct()
        .columns()
        .first()
        .ok_or_else(|| FileError::invalid("expected a struct with a field, found one without"))
}

fn has_empty<O: OffsetSizeTrait>(offsets: &[O], nulls: Option<&NullBuffer>) -> bool {
    let mut lengths = offsets
        .iter()
        .zip(offsets.iter().skip(1))
        .map(|(start, end)| start == end);
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => lengths.any(|empty| empty),
        Some(nulls) => lengths.zip(nulls.iter()).any(|(empty, valid)| empty && valid),
    }
}

/// The levels as they grow, piece after piece.
struct Entries {
    rep: Option<Vec<u16>>,
    def: Option<Vec<u16>>,
}

/// The entries of one piece between two layers, and the rows of the next layer that its open entries stand for.
struct Front {
    rep: Option<Vec<u16>>,
    def: Option<Vec<u16>>,
    rows: Vec<Range<usize>>,
}

impl Entries {
    fn new(has_rep: bool, has_def: bool) -> Entries {
        Entries {
            rep: has_rep.then(Vec::new),
            def: has_def.then(Vec::new),
        }
    }

    fn add(
        &mut self,
        array: &ArrayRef,
        path: &[Step],
        given: &[LayerLevels],
        leaves: &mut Vec<ArrayRef>,
    ) -> Result<()> {
        let mut front = Front {
            rep: self.rep.as_ref().map(|_| vec![0; array.len()]),
            def: self.def.as_ref().map(|_| vec![0; array.len()]),
            rows: vec![0..array.len()],
        };
        let mut array = array;
        for (step, levels) in path.iter().zip(given) {
            match step {
                Step::Struct { .. } => {
                    front.mark_nulls(array.nulls(), levels.null);
                    array = only_child(array)?;
                }
                Step::FixedSizeList(size) => {
                    front.mark_nulls(array.nulls(), levels.null);
                    front.multiply(*size);
                    array = array.as_fixed_size_list().values();
                }
                Step::List | Step::Map => {
                    let list = array.as_list::<i32>();
                    front.open_lists(list.value_offsets(), list.nulls(), *levels);
                    array = list.values();
                }
                Step::LargeList => {
                    let list = array.as_list::<i64>();
                    front.open_lists(list.value_offsets(), list.nulls(), *levels);
                    array = list.values();
                }
            }
        }
        if let Some(levels) = given.last() {
            front.mark_nulls(array.logical_nulls().as_ref(), levels.null);
        }
        leaves.extend(front.rows.iter().map(|rows| array.slice(rows.start, rows.len())));
        append(&mut self.rep, front.rep);
        if let Some(def) = &mut front.def {
            def.iter_mut().for_each(|level| *level &= !CLOSED);
        }
        append(&mut self.def, front.def);
        Ok(())
    }
}

fn append(levels: &mut Option<Vec<u16>>, mut more: Option<Vec<u16>>) {
    if let (Some(levels), Some(more)) = (levels, &mut more) {
        if levels.is_empty() {
            *levels = std::mem::take(more);
        } else {
            levels.append(more);
        }
    }
}

impl Front {
    /// Marks the open entries that stand for a null, unless something further out is missing already.
    fn mark_nulls(&mut self, nulls: Option<&NullBuffer>, level: u16) {
        let (Some(def), Some(nulls)) = (&mut self.def, nulls.filter(|nulls| nulls.null_count() > 0)) else {
            return;
        };
        let all_rows = self.rows.first() == Some(&(0..nulls.len()));
        if all_rows && def.len() == nulls.len() {
            for row in (!nulls.inner()).set_indices() {
                if let Some(def) = def.get_mut(row).filter(|def| **def == 0) {
                    *def = level;
                }
            }
            return;
        }
        let mut rows = self.rows.iter().cloned().flatten();
        for def in def.iter_mut().filter(|def| **def & CLOSED == 0) {
            let Some(row) = rows.next() else { break };
            if *def == 0 && nulls.is_null(row) {
                *def = level;
            }
        }
    }

    /// Replaces each entry, which stands for a fixed-size list, by `size` items. No lists are around it.
    fn multiply(&mut self, size: usize) {
        if let Some(def) = &mut self.def {
            *def = def.iter().flat_map(|level| std::iter::repeat_n(*level, size)).collect();
        }
        for rows in &mut self.rows {
            *rows = rows.start * size..rows.end * size;
        }
    }

    /// Replaces each open entry, which stands for a list, by the list's items.
    fn open_lists<O: OffsetSizeTrait>(&mut self, offsets: &[O], nulls: Option<&NullBuffer>, levels: LayerLevels) {
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        let Some(rep) = self.rep.take() else { return };
        let spans: usize = self.rows.iter().map(|rows| span(offsets, rows).len()).sum();
        let mut out = Opened {
            rep: Vec::with_capacity(rep.len() + spans),
            rows: Vec::with_capacity(self.rows.len()),
        };
        let mut rows = self.rows.iter().cloned().flatten();
        let begins = |rep: u16| if rep == 0 { levels.rep } else { rep };
        match self.def.take() {
            None => {
                for rep in rep {
                    let Some(row) = rows.next() else { break };
                    out.items(begins(rep), span(offsets, &(row..row + 1)));
                }
            }
            Some(def) => {
                let mut new_def = Vec::with_capacity(def.len() + spans);
                for (rep, def) in rep.into_iter().zip(def) {
                    if def & CLOSED != 0 {
                        out.rep.push(rep);
                        new_def.push(def);
                        continue;
                    }
                    let Some(row) = rows.next() else { break };
                    let items = span(offsets, &(row..row + 1));
                    let missing = if def != 0 {
                        def
                    } else if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                        levels.null
                    } else if items.is_empty() {
                        levels.empty
                    } else {
                        new_def.resize(new_def.len() + items.len(), 0);
                        out.items(begins(rep), items);
                        continue;
                    };
                    out.rep.push(begins(rep));
                    new_def.push(missing | CLOSED);
                }
                self.def = Some(new_def);
            }
        }
        self.rep = Some(out.rep);
        self.rows = out.rows;
    }
}

struct Opened {
    rep: Vec<u16>,
    rows: Vec<Range<usize>>,
}

impl Opened {
    fn items(&mut self, rep: u16, items: Range<usize>) {
        if items.is_empty() {
            return;
        }
        self.rep.push(rep);
        self.rep.resize(self.rep.len() + items.len() - 1, 0);
        match self.rows.last_mut() {
            Some(last) if last.end == items.start => last.end = items.end,
            _ => self.rows.push(items),
        }
    }
}

/// The items that lists `rows` hold between them.
fn span<O: OffsetSizeTrait>(offsets: &[O], rows: &Range<usize>) -> Range<usize> {
    let at = |index: usize| offsets.get(index).map_or(0, |offset| offset.as_usize());
    at(rows.start)..at(rows.end).max(at(rows.start))
}
