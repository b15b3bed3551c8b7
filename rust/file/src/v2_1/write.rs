//! Buffers the values of each leaf until they fill a page.
//!
//! A top-level field has a column for each of its leaves. What waits for a page is kept leaf by leaf, with the way from the top to the
//! leaf around it; a page ends at a top-level row.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_schema::DataType;
use prost::Message;

use super::choose::Target;
use super::columns::assign_columns;
use super::encode::{encode, Encoded};
use super::message::PAGE_LAYOUT;
use super::path::{leaves, pruned, stride, Leaf, Step};
use crate::container::WrittenPage;
use crate::error::{FileError, Result};
use crate::goal::Goal;
use crate::schema::Schema;
use crate::v2_0::flat::decode::byte_width;
use crate::v2_0::retain::{own, sharing};
use crate::version::FileVersion;

/// Whose memory values are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValuesMemory {
    /// Nothing else is in it.
    Own,
    /// That of a batch, or of a read, with others: a few values kept of it keep all of it.
    Shared,
}

/// Values of one leaf that wait to be encoded as a page.
#[derive(Debug)]
pub(crate) struct PendingPage {
    column: usize,
    leaf: std::sync::Arc<Leaf>,
    version: FileVersion,
    goal: Goal,
    arrays: Vec<ArrayRef>,
    /// How many of the arrays, from the first, are in memory of their own.
    owned: usize,
    bytes: u64,
    /// The first top-level row.
    row: u64,
    /// No page of the column was full before.
    first: bool,
    /// No other page of the column stands beside it.
    alone: bool,
}

/// The columns of one top-level field while a file is written.
#[derive(Debug)]
pub(crate) struct ColumnSink {
    pending: Vec<PendingPage>,
}

/// A sink for each top-level field.
pub(crate) fn sinks(schema: &Schema, version: FileVersion, goal: Goal) -> Result<Vec<ColumnSink>> {
    let columns = assign_columns(schema);
    let fields = schema.fields.iter();
    fields
        .map(|field| {
            let pending = leaves(field)?.into_iter().map(|leaf| {
                let column = columns.get(&leaf.field.id).copied();
                let column = column
                    .ok_or_else(|| FileError::invalid(format!("expected a column for '{}', found none", leaf.name)))?;
                Ok(PendingPage {
                    column,
                    leaf: std::sync::Arc::new(leaf),
                    version,
                    goal,
                    arrays: Vec::new(),
                    owned: 0,
                    bytes: 0,
                    row: 0,
                    first: true,
                    alone: false,
                })
            });
            Ok(ColumnSink {
                pending: pending.collect::<Result<_>>()?,
            })
        })
        .collect()
}

impl PendingPage {
    /// Bytes of the values.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Encodes the page, or several where one cannot hold so many null and empty lists one after the other. This is the expensive part, and
    /// needs nothing but the page.
    pub(crate) fn encode(mut self) -> Result<Vec<WrittenPage>> {
        let mut pages = Vec::with_capacity(1);
        let arrays = std::mem::take(&mut self.arrays);
        self.encode_rows(arrays, self.row, self.alone, &mut pages)?;
        Ok(pages)
    }

    fn encode_rows(&self, arrays: Vec<ArrayRef>, row: u64, alone: bool, pages: &mut Vec<WrittenPage>) -> Result<()> {
        let rows: usize = arrays.iter().map(|array| array.len()).sum();
        let stride = stride(&self.leaf.path);
        let target = Target {
            leaf: &self.leaf,
            version: self.version,
            goal: self.goal,
        };
        match encode(arrays, target, alone)? {
            Encoded::Page(page) => pages.push(WrittenPage {
                column: self.column,
                buffers: page.buffers,
                num_values: (rows as u64).saturating_mul(stride),
                priority: row.saturating_mul(stride),
                encoding_type: PAGE_LAYOUT,
                encoding: page.layout.encode_to_vec(),
            }),
            Encoded::TooManyLists(arrays) => {
                let half = rows / 2;
                let (first, second) = split(arrays, half);
                self.encode_rows(first, row, false, pages)?;
                self.encode_rows(second, row.saturating_add(half as u64), false, pages)?;
            }
        }
        Ok(())
    }

    fn take(&mut self) -> PendingPage {
        let next = PendingPage {
            column: self.column,
            leaf: self.leaf.clone(),
            version: self.version,
            goal: self.goal,
            arrays: Vec::new(),
            owned: 0,
            bytes: 0,
            row: 0,
            first: false,
            alone: false,
        };
        std::mem::replace(self, next)
    }

    fn own(&mut self) {
        self.own_until(self.arrays.len());
    }

    /// Copies what lies in memory of others, among the first `end` arrays.
    fn own_until(&mut self, end: usize) {
        let end = end.min(self.arrays.len());
        own(&mut self.arrays, self.owned, end);
        self.owned = self.owned.max(end);
    }

    /// Adds values row by row until pages are full.
    fn push(&mut self, array: &ArrayRef, row: u64, page_bytes: u64, full: &mut Vec<PendingPage>) {
        let mut start = 0;
        while start < array.len() {
            let room = page_bytes.saturating_sub(self.bytes);
            let end = rows_for(array, &self.leaf.path, start, room);
            if self.arrays.is_empty() {
                self.row = row.saturating_add(start as u64);
            }
            let (rows, items) = sharing(&array.slice(start, end - start), self.arrays.last());
            self.arrays.push(rows);
            let bytes = row_bytes(array, &self.leaf.path, start, end).saturating_add(items);
            self.bytes = self.bytes.saturating_add(bytes);
            if self.bytes >= page_bytes {
                full.push(self.take());
            }
            start = end;
        }
    }
}

impl ColumnSink {
    /// Takes values in; pages that they fill go to `full`. `row` is the top-level row of the first value.
    pub(crate) fn push(
        &mut self,
        array: &ArrayRef,
        row: u64,
        page_bytes: u64,
        full: &mut Vec<PendingPage>,
    ) -> Result<()> {
        for pending in &mut self.pending {
            let array = pruned(array, &pending.leaf.path)?;
            pending.push(&array, row, page_bytes, full);
        }
        Ok(())
    }

    /// Takes values of one leaf in, in structs of nothing but the way to it. What waits of them is copied out of memory of others.
    pub(crate) fn push_leaf(
        &mut self,
        leaf: usize,
        array: &ArrayRef,
        memory: ValuesMemory,
        row: u64,
        page_bytes: u64,
        full: &mut Vec<PendingPage>,
    ) -> Result<()> {
        let pending = self.pending.get_mut(leaf);
        let pending = pending.ok_or_else(|| FileError::invalid(format!("expected a leaf {leaf}, found none")))?;
        let only = pending.leaf.path.iter().map(|step| match *step {
            Step::Struct { nullable, .. } => Step::Struct { field: 0, nullable },
            other => other,
        });
        let array = pruned(array, &only.collect::<Vec<_>>())?;
        pending.push(&array, row, page_bytes, full);
        if memory == ValuesMemory::Own && is_tight(&array) {
            pending.owned = pending.arrays.len();
        }
        pending.own();
        Ok(())
    }

    /// Gives what waits of one leaf up as a page, in front of an encoded one. Returns the leaf's column.
    pub(crate) fn flush_leaf(&mut self, leaf: usize, full: &mut Vec<PendingPage>) -> Option<usize> {
        let pending = self.pending.get_mut(leaf)?;
        if !pending.arrays.is_empty() {
            full.push(pending.take());
        }
        pending.first = false;
        Some(pending.column)
    }

    /// Gives what waits of one leaf up as its last page.
    pub(crate) fn end_leaf(&mut self, leaf: usize, full: &mut Vec<PendingPage>) {
        if let Some(pending) = self.pending.get_mut(leaf).filter(|pending| !pending.arrays.is_empty()) {
            let mut page = pending.take();
            page.alone = page.first;
            full.push(page);
        }
    }

    /// Bytes that wait.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.pending.iter().map(|pending| pending.bytes).sum()
    }

    /// Gives what waits up as pages; at the file's end they are the last.
    pub(crate) fn flush(&mut self, last: bool, full: &mut Vec<PendingPage>) {
        for pending in self.pending.iter_mut().filter(|pending| !pending.arrays.is_empty()) {
            let mut page = pending.take();
            page.alone = last && page.first;
            full.push(page);
        }
    }

    /// Copies what waits in memory of others.
    pub(crate) fn own(&mut self) {
        self.pending.iter_mut().for_each(PendingPage::own);
    }

    /// The same of all that came before the last array.
    pub(crate) fn own_earlier(&mut self) {
        for pending in &mut self.pending {
            pending.own_until(pending.arrays.len().saturating_sub(1));
        }
    }
}

/// The first `rows` rows of arrays, and the others.
fn split(arrays: Vec<ArrayRef>, rows: usize) -> (Vec<ArrayRef>, Vec<ArrayRef>) {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let mut left = rows;
    for array in arrays {
        let here = left.min(array.len());
        left -= here;
        if here > 0 {
            first.push(array.slice(0, here));
        }
        if here < array.len() {
            second.push(array.slice(here, array.len() - here));
        }
    }
    (first, second)
}

/// Whether an array takes hardly more memory than its values do.
fn is_tight(array: &ArrayRef) -> bool {
    const LITTLE: usize = 4096;
    let data = array.to_data();
    let values = data.get_slice_memory_size().unwrap_or(0);
    data.get_buffer_memory_size() <= values.saturating_add(values / 2).saturating_add(LITTLE)
}

/// The first row at which rows from `start` on take `room` bytes, at least one row further.
fn rows_for(array: &ArrayRef, path: &[Step], start: usize, room: u64) -> usize {
    let len = array.len();
    if row_bytes(array, path, start, len) <= room {
        return len;
    }
    let (mut low, mut high) = (start + 1, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if row_bytes(array, path, start, middle) >= room {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Bytes that rows of an array take when they are written plainly, more or less.
fn row_bytes(array: &ArrayRef, path: &[Step], start: usize, end: usize) -> u64 {
    let rows = end.saturating_sub(start) as u64;
    match path.split_first() {
        None => leaf_bytes(array, start, end),
        Some((Step::Struct { .. }, rest)) => {
            let below = array.as_struct().columns().first();
            rows / 8 + below.map_or(0, |child| row_bytes(child, rest, start, end))
        }
        Some((Step::FixedSizeList(size), rest)) => {
            let items = array.as_fixed_size_list().values();
            row_bytes(items, rest, start.saturating_mul(*size), end.saturating_mul(*size))
        }
        Some((Step::List | Step::Map, rest)) => {
            let list = array.as_list::<i32>();
            let (from, to) = bounds(list.value_offsets(), start, end);
            rows * 2 + row_bytes(list.values(), rest, from, to)
        }
        Some((Step::LargeList, rest)) => {
            let list = array.as_list::<i64>();
            let (from, to) = bounds(list.value_offsets(), start, end);
            rows * 2 + row_bytes(list.values(), rest, from, to)
        }
    }
}

fn bounds<O: OffsetSizeTrait>(offsets: &[O], start: usize, end: usize) -> (usize, usize) {
    let at = |index: usize| offsets.get(index).map_or(0, |offset| offset.as_usize());
    (at(start), at(end).max(at(start)))
}

fn leaf_bytes(array: &ArrayRef, start: usize, end: usize) -> u64 {
    let rows = end.saturating_sub(start) as u64;
    let spanned = |bounds: (usize, usize)| (bounds.1 - bounds.0) as u64;
    match array.data_type() {
        DataType::Utf8 => rows * 4 + spanned(bounds(array.as_string::<i32>().value_offsets(), start, end)),
        DataType::Binary => rows * 4 + spanned(bounds(array.as_binary::<i32>().value_offsets(), start, end)),
        DataType::LargeUtf8 => rows * 8 + spanned(bounds(array.as_string::<i64>().value_offsets(), start, end)),
        DataType::LargeBinary => rows * 8 + spanned(bounds(array.as_binary::<i64>().value_offsets(), start, end)),
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            let items = array.as_fixed_size_list().values();
            leaf_bytes(items, start.saturating_mul(size), end.saturating_mul(size))
        }
        DataType::Struct(_) => {
            let fields = array.as_struct().columns().iter();
            fields.map(|field| leaf_bytes(field, start, end)).sum::<u64>() + rows / 8
        }
        DataType::Dictionary(key, _) => rows * key.primitive_width().unwrap_or(8) as u64,
        DataType::Boolean | DataType::Null => rows.div_ceil(8),
        other => rows * byte_width(other).unwrap_or(8),
    }
}
