//! From levels to validity and offsets, layer by layer, over all pages of a column.
//!
//! An entry starts something at a layer if its repetition level is large enough and no list around the layer is null or empty there.
//! What starts is null if the definition level says so, or says that something around it within the same list is null.

use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};

use super::decode::{iter, Levels};
use super::layers::{Layer, LayerKind, Layers};
use crate::error::{FileError, Result};
use crate::v2_1::builder::ValidityBuilder;
use crate::v2_1::page::PageId;

/// One layer of a column, over its pages.
#[derive(Debug)]
pub(crate) struct LayerBuilder {
    validity: ValidityBuilder,
    /// Of a list: where each list starts among the items, as far as they are known.
    starts: Option<Vec<i64>>,
    /// Items of the lists so far.
    items: i64,
    /// Of a list of structs of one length, and all around it: how many entries make one.
    stride: usize,
    /// Entries since the last start, where the stride is more than 1.
    phase: usize,
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
    let mut stride = 1;
    kinds
        .iter()
        .take(owned)
        .map(|kind| {
            if let LayerKind::FixedList(size) = kind {
                stride *= (*size).max(1);
            }
            LayerBuilder {
                validity: ValidityBuilder::default(),
                starts: (*kind == LayerKind::List).then(Vec::new),
                items: 0,
                stride,
                phase: 0,
            }
        })
        .collect()
}

/// Adds the levels of a page to the layers of its column. The levels were checked against the layers.
pub(crate) fn unravel(at: &PageId, layers: &Layers, levels: &Levels, out: &mut [LayerBuilder]) -> Result<()> {
    for (index, builder) in out.iter_mut().enumerate() {
        let Some(layer) = layers.layers.get(index) else { break };
        if builder.starts.is_some() {
            let below = index.checked_sub(1).and_then(|below| layers.layers.get(below));
            builder.append_lists(at, layer, below, levels)?;
        } else if builder.stride > 1 {
            builder.append_strided(layer, levels);
        } else {
            builder.append_items(layer, levels);
        }
    }
    Ok(())
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

impl LayerBuilder {
    fn append_items(&mut self, layer: &Layer, levels: &Levels) {
        let below = layer.below;
        match (&levels.rep, &levels.def) {
            (_, None) if layer.starts == 0 => self.validity.append_valid(levels.len),
            (None, Some(def)) => {
                let def = def.as_chunks::<2>().0;
                let is_valid = |i: usize| def.get(i).is_some_and(|level| u16::from_le_bytes(*level) <= below);
                self.validity.append_with(def.len(), is_valid);
            }
            _ => {
                for (rep, def) in pairs(levels) {
                    if starts(layer, rep, def) {
                        self.validity.append(def <= below);
                    }
                }
            }
        }
    }

    fn append_strided(&mut self, layer: &Layer, levels: &Levels) {
        for (rep, def) in pairs(levels) {
            if starts(layer, rep, def) {
                if self.phase == 0 {
                    self.validity.append(def <= layer.below);
                    self.phase = self.stride;
                }
                self.phase -= 1;
            }
        }
    }

    fn append_lists(&mut self, at: &PageId, layer: &Layer, below: Option<&Layer>, levels: &Levels) -> Result<()> {
        if levels.rep.is_none() && levels.len > 0 {
            return Err(at.corrupt("expected repetition levels for lists, found none"));
        }
        let Some(below) = below else {
            return Err(at.corrupt("expected something inside a list, found nothing"));
        };
        let offsets = self.starts.get_or_insert_with(Vec::new);
        let top = layer.empty.or(layer.null).unwrap_or(layer.below);
        let null = layer.null.unwrap_or(u16::MAX);
        for (rep, def) in pairs(levels) {
            if starts(layer, rep, def) {
                offsets.push(self.items);
                self.validity.append(def != null && def <= top);
            }
            self.items += i64::from(starts(below, rep, def));
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
        let narrow: std::result::Result<Vec<i32>, _> = offsets.iter().map(|o| i32::try_from(*o)).collect();
        let narrow = narrow.map_err(|_| {
            FileError::invalid(format!(
                "the lists of one batch hold more than {} items; read fewer rows at a time or use large_list",
                i32::MAX
            ))
        })?;
        Ok(OffsetBuffer::new(ScalarBuffer::from(narrow)))
    }

    /// The offsets of 64 bits of a large list.
    pub(crate) fn offsets_i64(&mut self) -> OffsetBuffer<i64> {
        OffsetBuffer::new(ScalarBuffer::from(self.offsets.take().unwrap_or_else(|| vec![0])))
    }
}
