//! Decodes one leaf column from the loaded bytes of its pages.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use bytes::Bytes;

use super::blob;
use super::builder::{ColumnName, LeafBuilder};
use super::levels::decode::Levels;
use super::levels::layers::Layers;
use super::levels::unravel::{builders, unravel, FinishedLayer, LayerBuilder};
use super::mini_block::page::Pick;
use super::page::PageId;
use super::state::{PageKind, PageState};
use super::tree::Leaf;
use crate::error::Result;
use crate::room::Room;

/// Levels that are unravelled together where a page may be taken in parts: they stay in the processor's nearest cache.
const LEVELS_AT_ONCE: usize = 4096;

/// A page with the bytes of its wanted rows.
#[derive(Debug)]
pub(crate) struct LoadedPage {
    pub(crate) at: PageId,
    pub(crate) state: Arc<PageState>,
    /// Sorted, counted from the page's first.
    pub(crate) rows: Vec<Range<u64>>,
    /// Of a page of chunks: the chunks.
    pub(crate) picks: Vec<Pick>,
    pub(crate) bytes: LoadedBytes,
}

impl LoadedPage {
    /// Bytes that were loaded.
    pub(crate) fn num_bytes(&self) -> usize {
        self.bytes.parts.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Values of the wanted rows: their number without lists, an estimate with them.
    fn num_values(&self) -> usize {
        let rows = self.rows.iter().map(|r| r.end - r.start).sum::<u64>();
        let values = match &self.state.kind {
            PageKind::MiniBlock(page) if page.layers.max_rep > 0 => {
                let index = &page.index;
                let (mut values, mut held) = (0_u64, 0_u64);
                for pick in &self.picks {
                    let (in_chunk, rows) = (index.values(pick.chunk), index.rows(pick.chunk));
                    values = values.saturating_add(in_chunk.end - in_chunk.start);
                    held = held.saturating_add(rows.end - rows.start);
                }
                if rows >= held / 2 {
                    values
                } else {
                    rows
                }
            }
            PageKind::MiniBlock(_) | PageKind::FullZip(_) => rows,
            PageKind::Constant(_) => 0,
        };
        usize::try_from(values).unwrap_or(usize::MAX)
    }
}

/// Parts of a file, by where they start.
#[derive(Debug, Default)]
pub(crate) struct LoadedBytes {
    pub(crate) parts: Vec<(u64, Bytes)>,
}

impl LoadedBytes {
    /// The bytes of a range of the file.
    pub(crate) fn get(&self, at: &PageId, range: &Range<u64>) -> Result<&[u8]> {
        let index = self.parts.partition_point(|(start, _)| *start <= range.start);
        let part = index.checked_sub(1).and_then(|index| self.parts.get(index));
        let found = match part {
            _ if range.is_empty() => Some(&[][..]),
            Some((start, bytes)) => within(*start, bytes.len(), range).and_then(|range| bytes.get(range)),
            None => None,
        };
        found.ok_or_else(|| {
            at.corrupt(format!(
                "expected bytes {}..{} of the file, found fewer",
                range.start, range.end
            ))
        })
    }
}

/// Where a range of the file lies in a part of it that starts at `start` and has `len` bytes.
fn within(start: u64, len: usize, range: &Range<u64>) -> Option<Range<usize>> {
    let from = usize::try_from(range.start.checked_sub(start)?).ok()?;
    let to = usize::try_from(range.end.checked_sub(start)?).ok()?;
    (from <= to && to <= len).then_some(from..to)
}

/// A range of the file out of a part of it.
pub(crate) fn cut((start, bytes): &(u64, Bytes), range: &Range<u64>) -> Option<Bytes> {
    if range.is_empty() {
        return Some(Bytes::new());
    }
    within(*start, bytes.len(), range).map(|range| bytes.slice(range))
}

/// A leaf's values and layers, over all pages.
#[derive(Debug)]
pub(crate) struct LeafColumn {
    pub(crate) name: ColumnName,
    leaf: Arc<Leaf>,
    values: LeafBuilder,
    layers: Vec<LayerBuilder>,
    /// Bytes of the file to decode in all, and how many are.
    total: usize,
    done: usize,
    /// The memory that there is for the values.
    room: Arc<Room>,
}

/// A leaf as an array, and the layers around it, innermost first.
#[derive(Debug)]
pub(crate) struct FinishedLeaf {
    pub(crate) array: ArrayRef,
    pub(crate) around: std::vec::IntoIter<FinishedLayer>,
    pub(crate) name: ColumnName,
}

impl LeafColumn {
    pub(crate) fn new(leaf: &Arc<Leaf>, path: &Arc<str>, room: &Arc<Room>) -> Result<LeafColumn> {
        Ok(LeafColumn {
            name: ColumnName {
                path: path.clone(),
                column: leaf.column,
            },
            leaf: leaf.clone(),
            values: LeafBuilder::new(&leaf.data_type)?,
            layers: builders(&leaf.kinds, leaf.owned),
            total: 0,
            done: 0,
            room: room.clone(),
        })
    }

    /// Decodes the pages of a leaf, as far as there is `room`.
    pub(crate) fn decode(
        leaf: &Arc<Leaf>,
        path: &Arc<str>,
        pages: &[LoadedPage],
        room: &Arc<Room>,
    ) -> Result<LeafColumn> {
        let mut column = LeafColumn::new(leaf, path, room)?;
        let bytes: usize = pages.iter().map(LoadedPage::num_bytes).sum();
        let values = pages
            .iter()
            .fold(0_usize, |sum, page| sum.saturating_add(page.num_values()));
        // At most 64 values per byte are reserved: more are unlikely, and a corrupt page may claim any number.
        column.values.expect(values.min(bytes.saturating_mul(64)), bytes);
        let rows = pages.iter().flat_map(|page| &page.rows);
        let rows = rows.fold(0_u64, |sum, range| sum.saturating_add(range.end - range.start));
        let rows = usize::try_from(rows)
            .unwrap_or(usize::MAX)
            .min(bytes.saturating_mul(64));
        column.layers.iter_mut().for_each(|layer| layer.expect(rows));
        column.total = bytes;
        column.values.allow(room);
        pages.iter().try_for_each(|page| column.append(page))?;
        room.take(column.values.memory());
        Ok(column)
    }

    fn append(&mut self, page: &LoadedPage) -> Result<()> {
        let LoadedPage { at, rows, .. } = page;
        let layers = page.state.layers();
        if page.state.blobs.is_none() {
            layers.check(at, &self.leaf.kinds)?;
        }
        let before = self.values.len();
        let levels = match &page.state.kind {
            PageKind::MiniBlock(state) => {
                let mut levels = Levels::new(state.rep.is_some(), state.def.is_some());
                let values = page.num_values().min(page.num_bytes().saturating_mul(64));
                if let Some(dictionary) = &state.dictionary {
                    dictionary.warm(values);
                }
                let may_go_on = page.state.blobs.is_none() && self.layers.iter().all(LayerBuilder::takes_parts);
                levels.expect(if may_go_on {
                    values.min(2 * LEVELS_AT_ONCE)
                } else {
                    values
                });
                for pick in &page.picks {
                    if may_go_on && levels.len >= LEVELS_AT_ONCE {
                        self.unravel(at, layers, &levels)?;
                        levels.clear();
                    }
                    if pick.is_direct {
                        state.decode_direct(at, pick, rows, &page.bytes, &mut levels, &mut self.values)?;
                        continue;
                    }
                    let stored = page.bytes.get(at, &state.chunk_range(pick.chunk))?;
                    state.decode(at, pick, rows, stored, &mut levels, &mut self.values)?;
                    self.done = self.done.saturating_add(stored.len());
                    self.check_size()?;
                    self.values.foresee(self.done, self.total);
                }
                levels
            }
            PageKind::FullZip(state) => {
                let mut levels = Levels::new(state.has_rep, state.has_def);
                for (range, (_, stored)) in rows.iter().zip(&page.bytes.parts) {
                    let LeafBuilder::Plain(out) = &mut self.values else {
                        return Err(at.corrupt("expected a dictionary for a column of a dictionary type, found none"));
                    };
                    state.decode(at, stored.clone(), range.end - range.start, &mut levels, out)?;
                    self.done = self.done.saturating_add(stored.len());
                    self.check_size()?;
                }
                levels
            }
            PageKind::Constant(state) => {
                let (has_rep, has_def) = state.has_levels();
                let mut levels = Levels::new(has_rep, has_def);
                state.decode(at, rows, &mut levels, &mut self.values)?;
                levels
            }
        };
        self.check_size()?;
        let Some(layers) = &page.state.blobs else {
            return self.unravel(at, layers, &levels);
        };
        if self.leaf.blob.is_none() {
            return Err(at.unsupported("a page of blobs in a column that is none; read it as a blob column"));
        }
        layers.check(at, &self.leaf.kinds)?;
        let levels = blob::decode::levels(at, layers, &self.values, before)?;
        self.unravel(at, layers, &levels)
    }

    /// Fails where the values take more memory than there is room, and says about how much all of them take.
    fn check_size(&self) -> Result<()> {
        let found = self.values.memory();
        if found <= self.room.left() {
            return Ok(());
        }
        let all = match self.done {
            0 => found as u128,
            done => (found as u128).saturating_mul(self.total.max(done) as u128) / done as u128,
        };
        Err(self.room.too_large(u64::try_from(all).unwrap_or(u64::MAX)))
    }

    fn unravel(&mut self, at: &PageId, layers: &Layers, levels: &Levels) -> Result<()> {
        levels.check(at, layers)?;
        unravel(at, layers, levels, &mut self.layers)?;
        let found = self.values.len();
        let expected = self.layers.first().map_or(found, LayerBuilder::len);
        if expected != found {
            return Err(at.corrupt(format!("expected {expected} values as the levels tell, found {found}")));
        }
        Ok(())
    }

    /// The leaf as an array, and the layers around it, innermost first.
    pub(crate) fn finish(self) -> Result<FinishedLeaf> {
        let layers: Vec<FinishedLayer> = self.layers.into_iter().map(LayerBuilder::finish).collect();
        let mut layers = layers.into_iter();
        let nulls = layers.next().and_then(|layer| layer.nulls);
        let array = self.values.finish(&self.name, &self.leaf.data_type, nulls)?;
        debug_assert_eq!(array.data_type(), &self.leaf.data_type);
        Ok(FinishedLeaf {
            array,
            around: layers,
            name: self.name,
        })
    }
}
