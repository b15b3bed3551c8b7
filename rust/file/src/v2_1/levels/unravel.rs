//! Unravels levels to validity and offsets, layer by layer, over all pages of a column.
//!
//! An entry starts something at a layer if its repetition level is large enough and no list around the layer is null or empty there.
//! What starts is null if the definition level says so, or says that something around it within the same list is null.

use arrow_buffer::{NullBuffer, OffsetBuffer};
use esker_codec::levels::{append_starts, chosen, count, within, without, Bounds, Level, Place};

use super::decode::{iter, Levels};
use super::layers::{Layer, LayerKind, Layers};
use crate::error::{FileError, Result};
use crate::v2_1::builder::{list_offsets, ValidityBuilder};
use crate::v2_1::page::PageId;

/// One layer of a column, over its pages.
#[derive(Debug)]
pub(crate) struct LayerBuilder {
    validity: ValidityBuilder,
    /// Of a list: where each list starts among the items, as far as they are known.
    starts: Option<Starting>,
    /// Items of the lists so far.
    items: i64,
    /// Of a list of structs of one length: how many entries make one.
    size: usize,
}

/// One layer, done.
#[derive(Debug)]
pub(crate) struct FinishedLayer {
    pub(crate) nulls: Option<NullBuffer>,
    pub(crate) offsets: Option<Starting>,
    pub(crate) len: usize,
}

/// Places among items. They are few enough for 32 bits but in the longest of lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Starting {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
}

impl Starting {
    /// Makes room for `places` more. A wish, not a need.
    fn expect(&mut self, places: usize) {
        // Where there is no memory for them now, there is none when they come.
        let _ = match self {
            Starting::Narrow(narrow) => narrow.try_reserve(places),
            Starting::Wide(wide) => wide.try_reserve(places),
        };
    }

    /// Makes the places fit for some up to `most`.
    fn widen(&mut self, most: i64) {
        if let (Starting::Narrow(narrow), Err(_)) = (&*self, i32::try_from(most)) {
            *self = Starting::Wide(narrow.iter().copied().map(i64::from).collect());
        }
    }
}

/// A builder for each of the innermost `owned` layers.
pub(crate) fn builders(kinds: &[LayerKind], owned: usize) -> Vec<LayerBuilder> {
    let builder = |kind: &LayerKind| LayerBuilder {
        validity: ValidityBuilder::default(),
        starts: (*kind == LayerKind::List).then(|| Starting::Narrow(Vec::new())),
        items: 0,
        size: match kind {
            LayerKind::FixedList(size) => (*size).max(1),
            _ => 1,
        },
    };
    kinds.iter().take(owned).map(builder).collect()
}

/// Adds the levels of a page, or of a part of it (see [`LayerBuilder::takes_parts`]), to the layers of its column. The levels were checked
/// against the layers.
pub(crate) fn unravel(at: &PageId, layers: &Layers, levels: &Levels, out: &mut [LayerBuilder]) -> Result<()> {
    let mut thinned: Option<Levels> = None;
    let mut below: Option<Starts> = None;
    for (index, builder) in out.iter_mut().enumerate() {
        let Some(layer) = layers.layers.get(index) else { break };
        if builder.size > 1 {
            thinned = Some(thin(layer, builder.size, thinned.as_ref().unwrap_or(levels)));
            below = None;
        }
        let levels = thinned.as_ref().unwrap_or(levels);
        let starts = Starts::of(layer, levels);
        if builder.starts.is_some() {
            let inside = index.checked_sub(1).and_then(|below| layers.layers.get(below));
            let inside = below.or_else(|| Some(Starts::of(inside?, levels)));
            builder.append_lists(at, layer, inside, levels, &starts)?;
        } else {
            builder.append_items(layer, levels, &starts);
        }
        below = Some(starts);
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

/// Which entries of a page start something at a layer.
struct Starts {
    /// A bit for each of them; none where every entry does.
    words: Option<Vec<u64>>,
    /// How many do.
    count: usize,
}

impl Starts {
    fn of(layer: &Layer, levels: &Levels) -> Starts {
        let rep = levels.rep().filter(|_| layer.starts > 0);
        let has_all = layer.starts == 0 || rep.is_some();
        match (rep, levels.def()) {
            (None, None) if has_all => Starts {
                words: None,
                count: levels.len,
            },
            (rep, def) => {
                // Lists without repetition levels start nowhere.
                let entries = if has_all { levels.len } else { 0 };
                let bounds = Bounds {
                    least: layer.starts,
                    most: layer.visible,
                };
                let words = within(entries, rep, def, bounds);
                let count = count(&words);
                Starts {
                    words: (count < levels.len).then_some(words),
                    count,
                }
            }
        }
    }

    /// Those of the flags of entries that are of entries that start something, and how many they are.
    fn flags(&self, flags: Vec<u64>) -> (Vec<u64>, usize) {
        match &self.words {
            Some(words) => chosen(&flags, words),
            None => (flags, self.count),
        }
    }
}

/// A bit for each entry whose definition level is `most` at most.
fn below(entries: usize, def: &[Level], most: u16) -> Vec<u64> {
    within(entries, None, Some(def), Bounds { least: 0, most })
}

impl LayerBuilder {
    fn append_items(&mut self, layer: &Layer, levels: &Levels, starts: &Starts) {
        match levels.def() {
            Some(def) if layer.visible != layer.below => {
                let flags = below(levels.len, def, layer.below);
                self.append_flags(starts, flags);
            }
            // No level tells of a null here.
            _ => self.validity.append_valid(starts.count),
        }
    }

    fn append_flags(&mut self, starts: &Starts, flags: Vec<u64>) {
        let (flags, count) = starts.flags(flags);
        self.validity.append_words(&flags, count);
    }

    fn append_lists(
        &mut self,
        at: &PageId,
        layer: &Layer,
        inside: Option<Starts>,
        levels: &Levels,
        starts: &Starts,
    ) -> Result<()> {
        let Some(inside) = inside else {
            return Err(at.corrupt("expected something inside a list, found nothing"));
        };
        if levels.rep.is_none() {
            return match levels.len {
                0 => Ok(()),
                _ => Err(at.corrupt("expected repetition levels for lists, found none")),
            };
        }
        let every;
        let lists = match &starts.words {
            Some(words) => words,
            None => {
                every = within(levels.len, None, None, Bounds { least: 0, most: 0 });
                &every
            }
        };
        let places = self.starts.get_or_insert_with(|| Starting::Narrow(Vec::new()));
        places.widen(self.items.saturating_add(i64::try_from(levels.len).unwrap_or(i64::MAX)));
        places.expect(starts.count);
        let (inside, entries) = (inside.words.as_deref(), levels.len);
        self.items = match places {
            Starting::Narrow(places) => append_starts(lists, inside, entries, self.items, places),
            Starting::Wide(places) => append_starts(lists, inside, entries, self.items, places),
        };
        let top = layer.empty.or(layer.null).unwrap_or(layer.below);
        match levels.def() {
            Some(def) if layer.null.is_some() || layer.visible != top => {
                let mut flags = below(levels.len, def, top);
                if let Some(null) = layer.null {
                    without(def, null, &mut flags);
                }
                self.append_flags(starts, flags);
            }
            _ => self.validity.append_valid(starts.count),
        }
        Ok(())
    }

    /// Makes room for the starts of `rows` lists, if it has lists. A wish, not a need.
    pub(crate) fn expect(&mut self, rows: usize) {
        if let Some(starts) = &mut self.starts {
            starts.expect(rows.saturating_add(1));
        }
    }

    /// Whether the levels of a page may come in parts, as the chunks of the page do: no list of one length is cut in two by them.
    pub(crate) fn takes_parts(&self) -> bool {
        self.size <= 1
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
                starts.widen(items);
                match &mut starts {
                    Starting::Narrow(starts) => starts.push(Place::of(items)),
                    Starting::Wide(starts) => starts.push(items),
                }
                starts
            }),
            len,
        }
    }
}

impl FinishedLayer {
    /// The offsets of 32 bits of a list.
    pub(crate) fn offsets_i32(&mut self) -> Result<OffsetBuffer<i32>> {
        let offsets = match self.offsets.take() {
            Some(Starting::Narrow(offsets)) => offsets,
            // They rise, so that the last one tells of all.
            Some(Starting::Wide(offsets)) if offsets.last().is_none_or(|last| i32::try_from(*last).is_ok()) => {
                offsets.into_iter().map(Place::of).collect()
            }
            Some(Starting::Wide(_)) => {
                return Err(FileError::invalid(format!(
                    "the lists of one batch hold more than {} items; read fewer rows at a time or use large_list",
                    i32::MAX
                )))
            }
            None => vec![0],
        };
        list_offsets(offsets).map_err(FileError::invalid)
    }

    /// The offsets of 64 bits of a large list.
    pub(crate) fn offsets_i64(&mut self) -> Result<OffsetBuffer<i64>> {
        let offsets = match self.offsets.take() {
            Some(Starting::Narrow(offsets)) => offsets.into_iter().map(i64::from).collect(),
            Some(Starting::Wide(offsets)) => offsets,
            None => vec![0],
        };
        list_offsets(offsets).map_err(FileError::invalid)
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

    fn places(starts: &[i32]) -> Option<Starting> {
        Some(Starting::Narrow(starts.to_vec()))
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
        assert_eq!(inner.offsets, places(&[0, 2, 2, 2, 2, 3]));
        assert_eq!(valid(inner), [true, false, false, true, true]);
        assert_eq!(valid(structs), [true, false, true, true, true]);
        assert_eq!(outer.offsets, places(&[0, 2, 2, 2, 5]));
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
        assert_eq!(lists.offsets, places(&[0, 2, 3, 3, 5]));
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
        assert_eq!(out[3].offsets, places(&[0, 2, 3]));
    }

    /// The same, entry by entry: validity, and offsets of lists.
    fn plain(layers: &Layers, kinds: &[LayerKind], pages: &[Levels]) -> Vec<(Vec<bool>, Option<Starting>)> {
        let starts = |layer: &Layer, rep: u16, def: u16| rep >= layer.starts && def <= layer.visible;
        let one = |index: usize| {
            let layer = layers.layers[index];
            let (mut valid, mut offsets, mut items) = (Vec::new(), Vec::new(), 0_i32);
            for (rep, def) in pages.iter().flat_map(pairs) {
                if starts(&layer, rep, def) {
                    offsets.push(items);
                    let top = layer.empty.or(layer.null).unwrap_or(layer.below);
                    valid.push(if layer.is_list {
                        Some(def) != layer.null && def <= top
                    } else {
                        def <= layer.below
                    });
                }
                items += i32::from(index > 0 && starts(&layers.layers[index - 1], rep, def));
            }
            offsets.push(items);
            (
                valid,
                (kinds[index] == LayerKind::List).then_some(Starting::Narrow(offsets)),
            )
        };
        (0..kinds.len()).map(one).collect()
    }

    proptest! {
        #[test]
        fn test_words_say_what_entries_say_one_by_one(
            codes in prop::sample::select(vec![
                vec![1, 2], vec![3, 2], vec![1, 6], vec![3, 6], vec![3, 4], vec![1, 5], vec![1, 6, 6], vec![3, 6, 3, 6], vec![1, 2, 1, 2], vec![3],
                vec![3, 3], vec![3, 2, 3], vec![1, 1, 6],
            ]),
            entries in prop::collection::vec((any::<u16>(), any::<u16>()), 0..400),
            few: bool,
            cut: usize,
        ) {
            let layers = Layers::new(&at(), &codes).unwrap();
            let kinds: Vec<LayerKind> = layers.layers.iter().map(|layer| if layer.is_list { LayerKind::List } else { LayerKind::Item }).collect();
            // Of random levels most are within something; a few null lists among many items are the usual case.
            let fit = |(rep, def): &(u16, u16)| match few {
                true => (if rep % 7 == 0 { layers.max_rep } else { 0 }, if def % 29 == 0 { layers.max_def } else { 0 }),
                false => (rep % (layers.max_rep + 1), def % (layers.max_def + 1)),
            };
            let entries: Vec<(u16, u16)> = entries.iter().map(fit).collect();
            let page = |entries: &[(u16, u16)]| {
                let (rep, def): (Vec<u16>, Vec<u16>) = entries.iter().copied().unzip();
                let made = levels((layers.max_rep > 0).then_some(&rep[..]), (layers.max_def > 0).then_some(&def[..]));
                Levels { len: entries.len(), ..made }
            };
            let (first, second) = entries.split_at(cut % (entries.len() + 1));
            let pages = [page(first), page(second)];
            let found = finished(&layers, &kinds, &pages);
            let found: Vec<_> = found.iter().map(|layer| (valid(layer), layer.offsets.clone())).collect();
            prop_assert_eq!(found, plain(&layers, &kinds, &pages));
        }
    }

    #[test]
    fn test_places_become_wide_where_they_must() {
        let (layers, kinds) = (Layers::new(&at(), &[1, 2]).unwrap(), [LayerKind::Item, LayerKind::List]);
        let page = levels(Some(&[1, 0, 1]), None);
        for (before, wide) in [
            (0, false),
            (i64::from(i32::MAX) - 3, false),
            (i64::from(i32::MAX) - 2, true),
        ] {
            let mut out = builders(&kinds, 2);
            out[1].items = before;
            unravel(&at(), &layers, &page, &mut out).unwrap();
            let mut lists = out.pop().unwrap().finish();
            assert_eq!(matches!(lists.offsets, Some(Starting::Wide(_))), wide, "{before}");
            let expected = [before, before + 2, before + 3];
            match lists.offsets.clone().unwrap() {
                Starting::Narrow(found) => assert_eq!(found, expected.map(<i32 as Place>::of)),
                Starting::Wide(found) => assert_eq!(found, expected),
            }
            assert_eq!(lists.offsets_i32().is_err(), wide);
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
