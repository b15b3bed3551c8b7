//! Folding by a delimiter: paths that continue after it become one common prefix. Finds the blocks and ranges that such a listing needs.
//!
//! ```text
//! index     | ..a/9 | ..b/4 | ..b/8 | ..c/2 |      the last path that each block may have
//! blocks    [ a.a.a ] a.b.b ] b.b.b ] b.c.c ]      only those in which one prefix ends and another begins are read
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::error::{GravelerError, Result};
use crate::list::{after_prefix, starts_with};
use crate::metarange::{Metarange, RangeInfo};
use crate::sstable::footer::Handle;
use crate::sstable::read::IndexCursor;
use crate::storage::{Storage, TableReader};

/// The most blocks of one range that are read concurrently, of 4 KiB each.
pub(crate) const MOST_BLOCKS: usize = 32;
/// The most ranges that are opened ahead of their use.
const MOST_RANGES: usize = 8;

/// How paths are folded.
#[derive(Debug, Clone)]
pub(crate) struct Folds {
    /// What all paths start with.
    pub(crate) prefix: Vec<u8>,
    /// The delimiter after which paths are folded; empty for no folding.
    pub(crate) delimiter: Vec<u8>,
}

/// The boundary blocks: those that a folded listing needs.
#[derive(Debug, Default)]
pub(crate) struct Boundaries {
    /// In their order.
    pub(crate) blocks: Vec<Handle>,
    /// The path up to which no other blocks are needed.
    pub(crate) until: Vec<u8>,
}

impl Folds {
    /// The common prefix of a path, up to and including the delimiter; `None` if the path does not continue after one.
    pub(crate) fn common<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        if self.delimiter.is_empty() || !starts_with(key, &self.prefix) {
            return None;
        }
        let rest = key.get(self.prefix.len()..)?;
        let at = match self.delimiter.as_slice() {
            [byte] => rest.iter().position(|found| found == byte),
            delimiter => rest.windows(delimiter.len()).position(|window| window == delimiter),
        }?;
        key.get(..self.prefix.len() + at + self.delimiter.len())
    }

    /// The first `most` blocks, from the one with `from` on, in which a common prefix ends or that hold paths without one.
    pub(crate) async fn boundaries(&self, reader: &TableReader, from: &[u8], most: usize) -> Result<Boundaries> {
        let mut found = Boundaries::default();
        let mut before: Option<Vec<u8>> = None;
        let mut top = IndexCursor::new(reader.end().index.clone())?;
        let mut next = top.advance_to(from)?;
        while let Some(handle) = next {
            if !reader.end().has_partitions {
                if self.look(top.key()?, handle, &mut before, &mut found, most) {
                    break;
                }
            } else {
                let mut partition = IndexCursor::new(reader.block(handle).await?)?;
                let mut below = partition.advance_to(from)?;
                while let Some(handle) = below {
                    if self.look(partition.key()?, handle, &mut before, &mut found, most) {
                        return Ok(found);
                    }
                    below = partition.advance()?;
                }
            }
            next = top.advance()?;
        }
        Ok(found)
    }

    /// Adds the block whose last path is at most `last`, if it is needed; true if there are enough.
    fn look(
        &self,
        last: &[u8],
        handle: Handle,
        before: &mut Option<Vec<u8>>,
        found: &mut Boundaries,
        most: usize,
    ) -> bool {
        let common = self.common(last);
        // Between two paths with the same common prefix, all paths have it.
        if common.is_none() || common != before.as_deref() {
            found.blocks.push(handle);
            *before = common.map(<[u8]>::to_vec);
        }
        found.until.clear();
        found.until.extend_from_slice(last);
        found.blocks.len() >= most || (last > self.prefix.as_slice() && !last.starts_with(&self.prefix))
    }

    /// The path from which a range must be read, after the common prefix of its first path; `None` if the metarange tells all.
    fn inner_start(&self, range: &RangeInfo) -> Option<Vec<u8>> {
        match self.common(&range.min_key) {
            Some(common) => after_prefix(common).filter(|after| *after <= range.max_key),
            None => Some(range.min_key.clone()),
        }
    }
}

/// Opens the next ranges of a listing ahead, with the blocks that it will need.
#[derive(Debug, Default)]
pub(crate) struct RangesAhead {
    under_way: VecDeque<(usize, JoinHandle<Result<TableReader>>)>,
    /// The first range that was not considered yet.
    next: usize,
    /// How many ranges are opened ahead: few at first, as the caller may stop soon.
    wanted: usize,
}

impl RangesAhead {
    /// The range of a number, if it is being opened; starts to open those after it.
    pub(crate) async fn take(
        &mut self,
        storage: &Arc<Storage>,
        metarange: &Metarange,
        folds: &Folds,
        at: usize,
    ) -> Result<Option<TableReader>> {
        self.next = self.next.max(at + 1);
        while let Some((_, task)) = self.under_way.pop_front_if(|(range, _)| *range < at) {
            task.abort();
        }
        self.begin(storage, metarange, folds);
        self.wanted = (2 * self.wanted).clamp(1, MOST_RANGES);
        let Some((_, task)) = self.under_way.pop_front_if(|(range, _)| *range == at) else {
            return Ok(None);
        };
        let opened = task
            .await
            .map_err(|error| GravelerError::task_failed("range", &error))?;
        opened.map(Some)
    }

    fn begin(&mut self, storage: &Arc<Storage>, metarange: &Metarange, folds: &Folds) {
        let end = after_prefix(&folds.prefix);
        while self.under_way.len() < self.wanted {
            let Some(range) = metarange.ranges().get(self.next) else {
                break;
            };
            if end.as_ref().is_some_and(|end| range.min_key >= *end) {
                break;
            }
            let at = self.next;
            self.next += 1;
            let Some(from) = folds.inner_start(range) else { continue };
            let (storage, folds, id) = (storage.clone(), folds.clone(), range.id.clone());
            let task = tokio::spawn(async move {
                let mut reader = storage.open(&id).await?.with_index().await?;
                let found = folds.boundaries(&reader, &from, MOST_BLOCKS).await?;
                reader.hold(&found).await?;
                Ok(reader)
            });
            self.under_way.push_back((at, task));
        }
    }
}

impl Drop for RangesAhead {
    fn drop(&mut self) {
        self.under_way.iter().for_each(|(_, task)| task.abort());
    }
}
