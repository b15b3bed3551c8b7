//! Unravels levels to validity and offsets, layer by layer, over all pages of a column.
//!
//! An entry starts something at a layer if its repetition level is large enough and no list around the layer is null or empty there.
//! What starts is null if the definition level says so, or says that something around it within the same list is null.

use std::array;

use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};

use super::decode::{count_of, count_of_both, iter, Levels};
use super::layers::{Layer, LayerKind, Layers};
use crate::error::{FileError, Result};
use crate::v2_1::builder::{pack, ValidityBuilder};
use crate::v2_1::page::PageId;

/// One layer of a column, over its pages.
#[derive(Debug)]
pub(crate) struct LayerBuilder {
    validity: ValidityBuilder,
    /// Of a list: where each list starts among the items, as far as they are known.
    starts: Option<Vec<i64>>,
    /// Items of the lists so far.
    items: i64,
    /// Of a list of structs of one length: how many entries make one.
    size: usize,
}

/// One layer, done.
#[derive(Debug)]
pub(crate) struct FinishedLayer {
    pub(crate) nulls: Option<NullBuffer>,
    pub(crate) offsets: Option<Vec<i64>>,
    pub(crate) len: usize,
}

/// A builder for each of the innermost `owned` layers.
pub(crate) fn builders(kinds: &[LayerKind], owned: usize) -> Vec<LayerBuilder> {
    let builder = |kind: &LayerKind| LayerBuilder {
        validity: ValidityBuilder::default(),
        starts: (*kind == LayerKind::List).then(Vec::new),
        items: 0,
        size: match kind {
            LayerKind::FixedList(size) => (*size).max(1),
            _ => 1,
        },
    };
    kinds.iter().take(owned).map(builder).collect()
}

/// Adds the levels of a page to the layers of its column. The levels were checked against the layers.
pub(crate) fn unravel(at: &PageId, layers: &Layers, levels: &Levels, out: &mut [LayerBuilder]) -> Result<()> {
    let mut thinned: Option<Levels> = None;
    for (index, builder) in out.iter_mut().enumerate() {
        let Some(layer) = layers.layers.get(index) else { break };
        if builder.size > 1 {
            thinned = Some(thin(layer, builder.size, thinned.as_ref().unwrap_or(levels)));
        }
        let levels = thinned.as_ref().unwrap_or(levels);
        if builder.starts.is_some() {
            let below = index.checked_sub(1).and_then(|below| layers.layers.get(below));
            builder.append_lists(at, layer, below, levels)?;
        } else {
            builder.append_items(layer, levels);
        }
    }
    Ok(())
}

/// The levels of lists of `size` entries each: of those that start at the layer every `size`th, and what stands for lists around it.
fn thin(layer: &Layer, size: usize, levels: &Levels) -> Levels {
    let mut thinned = Levels::new(levels.rep.is_some(), levels.def.is_some());
    let mut entries = 0_usize;
    for (rep, def) in pairs(levels) {
        if rep < layer.starts {
            continue;
        }
        let is_first = def > layer.visible || entries.is_multiple_of(size);
        entries = entries.saturating_add(usize::from(def <= layer.visible));
        if is_first {
            thinned.push(rep, def);
        }
    }
    thinned
}

/// All levels, 0 where there are none.
fn pairs(levels: &Levels) -> impl Iterator<Item = (u16, u16)> + '_ {
    let mut rep = levels.rep.as_deref().map(iter);
    let mut def = levels.def.as_deref().map(iter);
    (0..levels.len).map(move |_| {
        let rep = rep.as_mut().and_then(Iterator::next).unwrap_or(0);
        (rep, def.as_mut().and_then(Iterator::next).unwrap_or(0))
    })
}

fn starts(layer: &Layer, rep: u16, def: u16) -> bool {
    rep >= layer.starts && def <= layer.visible
}

/// How many entries start something at a layer.
fn count_starts(layer: &Layer, levels: &Levels) -> usize {
    match (&levels.rep, &levels.def) {
        (_, None) if layer.starts == 0 => levels.len,
        (_, Some(def)) if layer.starts == 0 => count_of(def, |def| def <= layer.visible),
        (Some(rep), None) => count_of(rep, |rep| rep >= layer.starts),
        (Some(rep), Some(def)) => count_of_both(rep, def, |rep, def| starts(layer, rep, def)),
        (None, _) => 0,
    }
}

/// The definition levels of the `count` entries that start something at a layer.
fn starting(layer: &Layer, rep: &[u8], def: &[u8], count: usize) -> Vec<[u8; 2]> {
    let (layer, mut next) = (*layer, 0_usize);
    let mut found = vec![[0; 2]; count];
    for (rep, def) in iter(rep).zip(iter(def)) {
        // As in `place_starts`.
        if let Some(place) = found.get_mut(next) {
            *place = def.to_le_bytes();
        }
        next = next.wrapping_add(usize::from(starts(&layer, rep, def)));
    }
    found
}

/// Entries whose levels are compared together.
const WORD: usize = 64;

/// Lists of fewer entries than that, on average, are placed entry by entry.
const FEW_ENTRIES: usize = 3;

/// Where each list starts among its items, and the definition level there. Returns the items after the last entry.
fn place_starts(
    entries: impl Iterator<Item = (u16, u16)>,
    layer: Layer,
    below: Layer,
    items_before: i64,
    places: &mut [i64],
    seen: &mut [[u8; 2]],
) -> i64 {
    let (mut items, mut next) = (items_before, 0_usize);
    for (rep, def) in entries {
        // Written unconditionally and overwritten until it is right: cheaper than a mispredicted branch.
        if let (Some(place), Some(level)) = (places.get_mut(next), seen.get_mut(next)) {
            (*place, *level) = (items, def.to_le_bytes());
        }
        next = next.wrapping_add(usize::from(starts(&layer, rep, def)));
        items = items.wrapping_add(i64::from(starts(&below, rep, def)));
    }
    items
}

/// A bit for each of up to 64 entries, the first one lowest: whether it starts something at a layer.
fn starts_of(layer: Layer, rep: &[[u8; 2]], def: &[[u8; 2]]) -> u64 {
    let mut flags = [0_u8; WORD];
    for ((flag, rep), def) in flags.iter_mut().zip(rep).zip(def) {
        let (rep, def) = (u16::from_le_bytes(*rep), u16::from_le_bytes(*def));
        *flag = u8::from(rep >= layer.starts) & u8::from(def <= layer.visible);
    }
    let (words, _) = flags.as_chunks::<8>();
    u64::from_le_bytes(array::from_fn(|place| words.get(place).map_or(0, |flags| pack(*flags))))
}

/// The same as [`place_starts`] for lists of many entries: from start to start instead of entry by entry.
fn place_far_starts(
    rep: &[u8],
    def: Option<&[u8]>,
    layer: Layer,
    below: Layer,
    items_before: i64,
    places: &mut [i64],
    seen: &mut [[u8; 2]],
) -> i64 {
    const NONE: [[u8; 2]; WORD] = [[0; 2]; WORD];
    let mut defs = def.map(|def| def.as_chunks::<2>().0.chunks(WORD));
    let mut out = places.iter_mut().zip(seen);
    let mut items = items_before;
    for rep in rep.as_chunks::<2>().0.chunks(WORD) {
        let def = defs
            .as_mut()
            .map_or(Some(&NONE[..]), Iterator::next)
            .unwrap_or_default();
        let mut lists = starts_of(layer, rep, def);
        let inside = starts_of(below, rep, def);
        while lists != 0 {
            let entry = lists.trailing_zeros();
            lists &= lists.wrapping_sub(1);
            // Most often everything is there, and nothing has to be counted.
            let before = match inside {
                u64::MAX => entry,
                some => (some & ((1_u64 << entry) - 1)).count_ones(),
            };
            if let (Some((place, level)), Some(def)) = (out.next(), def.get(entry as usize)) {
                (*place, *level) = (items.wrapping_add(i64::from(before)), *def);
            }
        }
        items = items.wrapping_add(i64::from(inside.count_ones()));
    }
    items
}

impl LayerBuilder {
    fn append_validity(&mut self, layer: &Layer, levels: &Levels, is_valid: impl Fn(u16) -> bool) {
        match (&levels.rep, &levels.def) {
            (_, None) => self.validity.append_valid(count_starts(layer, levels)),
            (None, Some(def)) => self.validity.append_levels(def.as_chunks::<2>().0, is_valid),
            (Some(_), Some(def)) if layer.starts == 0 => {
                let seen = iter(def).filter(|def| *def <= layer.visible);
                self.validity.extend(seen.map(is_valid));
            }
            (Some(rep), Some(def)) => {
                let seen = starting(layer, rep, def, count_starts(layer, levels));
                self.validity.append_levels(&seen, is_valid);
            }
        }
    }

    fn append_items(&mut self, layer: &Layer, levels: &Levels) {
        if layer.visible == layer.below {
            // No level tells of a null here.
            self.validity.append_valid(count_starts(layer, levels));
        } else {
            self.append_validity(layer, levels, |def| def <= layer.below);
        }
    }

    fn append_lists(&mut self, at: &PageId, layer: &Layer, below: Option<&Layer>, levels: &Levels) -> Result<()> {
        let Some(below) = below else {
            return Err(at.corrupt("expected something inside a list, found nothing"));
        };
        let Some(rep) = &levels.rep else {
            return match levels.len {
                0 => Ok(()),
                _ => Err(at.corrupt("expected repetition levels for lists, found none")),
            };
        };
        let count = count_starts(layer, levels);
        let offsets = self.starts.get_or_insert_with(Vec::new);
        let before = offsets.len();
        offsets.resize(before.saturating_add(count), 0);
        let places = offsets.get_mut(before..).unwrap_or_default();
        let (layer_of, below_of, items, mut seen) = (*layer, *below, self.items, vec![[0; 2]; count]);
        self.items = if count < levels.len / FEW_ENTRIES {
            place_far_starts(rep, levels.def.as_deref(), layer_of, below_of, items, places, &mut seen)
        } else {
            let rep = iter(rep);
            match &levels.def {
                None => place_starts(rep.map(|rep| (rep, 0)), layer_of, below_of, items, places, &mut seen),
                Some(def) => place_starts(rep.zip(iter(def)), layer_of, below_of, items, places, &mut seen),
            }
        };
        let top = layer.empty.or(layer.null).unwrap_or(layer.below);
        if layer.null.is_none() && layer.visible == top {
            self.validity.append_valid(count);
        } else {
            let null = layer.null.unwrap_or(u16::MAX);
            self.validity.append_levels(&seen, |def| def != null && def <= top);
        }
        Ok(())
    }

    /// What started at this layer so far.
    pub(crate) fn len(&self) -> usize {
        self.validity.len()
    }

    pub(crate) fn finish(self) -> FinishedLayer {
        let len = self.validity.len();
        let items = self.items;
        FinishedLayer {
            nulls: self.validity.finish(),
            offsets: self.starts.map(|mut starts| {
                starts.push(items);
                starts
            }),
            len,
        }
    }
}

impl FinishedLayer {
    /// The offsets of 32 bits of a list.
    pub(crate) fn offsets_i32(&self) -> Result<OffsetBuffer<i32>> {
        let offsets = self.offsets.as_deref().unwrap_or(&[0]);
        // They rise, so that the last one tells of all.
        if offsets.last().is_some_and(|last| i32::try_from(*last).is_err()) {
            return Err(FileError::invalid(format!(
                "the lists of one batch hold more than {} items; read fewer rows at a time or use large_list",
                i32::MAX
            )));
        }
        let narrow = offsets.iter().map(|offset| {
            let [first, second, third, fourth, ..] = offset.to_le_bytes();
            i32::from_le_bytes([first, second, third, fourth])
        });
        let narrow: Vec<i32> = narrow.collect();
        Ok(OffsetBuffer::new(ScalarBuffer::from(narrow)))
    }

    /// The offsets of 64 bits of a large list.
    pub(crate) fn offsets_i64(&mut self) -> OffsetBuffer<i64> {
        OffsetBuffer::new(ScalarBuffer::from(self.offsets.take().unwrap_or_else(|| vec![0])))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::v2_1::levels::decode::row_bounds;
    use crate::version::FileVersion;

    fn at() -> PageId {
        PageId {
            path: "a.lance".into(),
            version: FileVersion::V2_1,
            column: 0,
            number: 0,
        }
    }

    fn levels(rep: Option<&[u16]>, def: Option<&[u16]>) -> Levels {
        let stored = |levels: &[u16]| levels.iter().flat_map(|l| l.to_le_bytes()).collect::<Vec<u8>>();
        Levels {
            rep: rep.map(stored),
            def: def.map(stored),
            len: rep.or(def).map_or(0, <[u16]>::len),
        }
    }

    fn valid(layer: &FinishedLayer) -> Vec<bool> {
        match &layer.nulls {
            Some(nulls) => nulls.iter().collect(),
            None => vec![true; layer.len],
        }
    }

    fn finished(layers: &Layers, kinds: &[LayerKind], pages: &[Levels]) -> Vec<FinishedLayer> {
        let mut out = builders(kinds, kinds.len());
        for page in pages {
            page.check(&at(), layers).unwrap();
            unravel(&at(), layers, page, &mut out).unwrap();
        }
        out.into_iter().map(LayerBuilder::finish).collect()
    }

    #[test]
    fn test_lists_of_nullable_structs_of_lists_come_back() {
        // Rows: [{[1, null]}, null struct], null, [], [{null list}, {[]}, {[2]}].
        let layers = Layers::new(&at(), &[3, 6, 3, 6]).unwrap();
        assert_eq!((layers.max_rep, layers.max_def, layers.max_visible()), (2, 6, 1));
        let kinds = [LayerKind::Item, LayerKind::List, LayerKind::Item, LayerKind::List];
        let rep = [2, 0, 1, 2, 2, 2, 1, 1];
        let def = [0, 1, 4, 5, 6, 2, 3, 0];
        let page = levels(Some(&rep), Some(&def));
        let [items, inner, structs, outer] = &finished(&layers, &kinds, std::slice::from_ref(&page))[..] else {
            panic!("expected four layers")
        };
        assert_eq!(valid(items), [true, false, true]);
        assert_eq!(inner.offsets.as_deref(), Some(&[0, 2, 2, 2, 2, 3][..]));
        assert_eq!(valid(inner), [true, false, false, true, true]);
        assert_eq!(valid(structs), [true, false, true, true, true]);
        assert_eq!(outer.offsets.as_deref(), Some(&[0, 2, 2, 2, 5][..]));
        assert_eq!(valid(outer), [true, false, true, true]);
        // Rows 1 to 3 start at entries 3, 4 and 5; two values come before them.
        assert_eq!(row_bounds(&page, &layers, 0, &[1, 3, 4]), [(3, 2), (5, 2), (8, 3)]);
        // A chunk that starts with the rest of row 6: bounds before it stand for its start.
        assert_eq!(row_bounds(&page, &layers, 7, &[6, 7, 8]), [(0, 0), (0, 0), (3, 2)]);
    }

    #[test]
    fn test_pages_with_other_layers_add_up() {
        let kinds = [LayerKind::Item, LayerKind::List];
        let all_there = Layers::new(&at(), &[1, 2]).unwrap();
        let nullable = Layers::new(&at(), &[3, 4]).unwrap();
        let mut out = builders(&kinds, 2);
        let (first, second) = (
            levels(Some(&[1, 0, 1]), None),
            levels(Some(&[1, 1, 0]), Some(&[2, 0, 1])),
        );
        unravel(&at(), &all_there, &first, &mut out).unwrap();
        unravel(&at(), &nullable, &second, &mut out).unwrap();
        let mut out = out.into_iter().map(LayerBuilder::finish);
        assert_eq!(valid(&out.next().unwrap()), [true, true, true, true, false]);
        let lists = out.next().unwrap();
        assert_eq!(valid(&lists), [true, true, false, true]);
        assert_eq!(lists.offsets.as_deref(), Some(&[0, 2, 3, 3, 5][..]));
    }

    #[test]
    fn test_lists_of_one_length_take_every_so_many_entries() {
        let layers = Layers::new(&at(), &[3, 3, 3]).unwrap();
        let kinds = [LayerKind::Item, LayerKind::Item, LayerKind::FixedList(2)];
        let page = levels(None, Some(&[0, 1, 3, 3, 2, 0]));
        let out = finished(&layers, &kinds, &[page]);
        assert_eq!(valid(&out[0]), [true, false, false, false, false, true]);
        assert_eq!(valid(&out[1]), [true, true, false, false, false, true]);
        assert_eq!(valid(&out[2]), [true, false, true]);
        // In a list the repetition level stands before each entry: [[[1, 2], [3, 4]], [[5, 6]]].
        let layers = Layers::new(&at(), &[1, 1, 1, 2]).unwrap();
        let kinds = [
            LayerKind::Item,
            LayerKind::Item,
            LayerKind::FixedList(2),
            LayerKind::List,
        ];
        let page = levels(Some(&[1, 1, 0, 0, 1, 1]), None);
        let out = finished(&layers, &kinds, &[page]);
        assert_eq!((out[0].len, out[2].len), (6, 3));
        assert_eq!(out[3].offsets.as_deref(), Some(&[0, 2, 3][..]));
    }

    proptest! {
        #[test]
        fn test_starts_are_the_same_from_start_to_start_and_entry_by_entry(
            entries in prop::collection::vec((0_u16..3, 0_u16..5), 0..400),
            has_def: bool,
            layer in (0_u16..3, 0_u16..5),
            below in (0_u16..3, 0_u16..5),
        ) {
            let of = |(starts, visible): (u16, u16)| Layer { is_list: true, below: 0, null: None, empty: None, visible, starts };
            let (layer, below) = (of(layer), of(below));
            let stored = |level: fn(&(u16, u16)) -> u16| entries.iter().flat_map(|e| level(e).to_le_bytes()).collect::<Vec<u8>>();
            let (rep, def) = (stored(|e| e.0), has_def.then(|| stored(|e| e.1)));
            let pairs: Vec<(u16, u16)> = entries.iter().map(|(rep, def)| (*rep, if has_def { *def } else { 0 })).collect();
            let count = pairs.iter().filter(|(rep, def)| starts(&layer, *rep, *def)).count();
            let (mut places, mut seen) = (vec![0; count], vec![[0; 2]; count]);
            let items = place_starts(pairs.iter().copied(), layer, below, 7, &mut places, &mut seen);
            let (mut far, mut far_seen) = (vec![0; count], vec![[0; 2]; count]);
            let far_items = place_far_starts(&rep, def.as_deref(), layer, below, 7, &mut far, &mut far_seen);
            prop_assert_eq!((far_items, far, far_seen), (items, places, seen));
        }
    }

    #[test]
    fn test_levels_and_layers_that_do_not_fit_are_refused() {
        let layers = Layers::new(&at(), &[3, 6]).unwrap();
        assert!(levels(Some(&[2]), Some(&[0])).check(&at(), &layers).is_err());
        assert!(levels(Some(&[1]), Some(&[4])).check(&at(), &layers).is_err());
        let uneven = Levels {
            len: 2,
            ..levels(Some(&[1]), Some(&[0]))
        };
        assert!(uneven.check(&at(), &layers).is_err());
        assert!(layers.check(&at(), &[LayerKind::Item, LayerKind::Item]).is_err());
        assert!(Layers::new(&at(), &[]).is_err());
        assert!(Layers::new(&at(), &[9]).is_err());
        let mut out = builders(&[LayerKind::Item, LayerKind::List], 2);
        assert!(unravel(&at(), &layers, &levels(None, Some(&[0])), &mut out).is_err());
    }
}
