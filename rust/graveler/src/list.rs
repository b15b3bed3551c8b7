//! Lists the paths of one content by prefix.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::Result;
use crate::folds::{Folds, RangesAhead, MOST_BLOCKS};
use crate::id::TableId;
use crate::metarange::{Metarange, RangeInfo};
use crate::storage::{Storage, TableCursor, TableReader};

/// The size in bytes at which a batch of paths or differences is full.
pub(crate) const BATCH_SIZE: usize = 64 << 20;

/// What a listing finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// A path and its framed value.
    Record(Vec<u8>, Bytes),
    /// A common prefix of paths, up to and including the delimiter.
    Prefix(Vec<u8>),
}

/// The ranges that may hold paths with a prefix.
pub(crate) fn within<'a>(ranges: &'a [RangeInfo], prefix: &[u8]) -> &'a [RangeInfo] {
    let start = ranges.partition_point(|range| range.max_key.as_slice() < prefix);
    let end = match after_prefix(prefix) {
        Some(after) => ranges.partition_point(|range| range.min_key < after),
        None => ranges.len(),
    };
    ranges.get(start..end.max(start)).unwrap_or_default()
}

/// Whether a path starts with a prefix. An empty prefix is answered without a comparison: some processors are a hundred times slower to
/// compare zero bytes at a dangling address than to compare some.
#[inline]
pub(crate) fn starts_with(path: &[u8], prefix: &[u8]) -> bool {
    prefix.is_empty() || path.starts_with(prefix)
}

/// The first path after all paths with a prefix; `None` if there is no such path.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let (kept, _) = prefix.split_at_checked(last + 1)?;
    let mut after = kept.to_vec();
    if let Some(byte) = after.last_mut() {
        *byte += 1;
    }
    Some(after)
}

/// An iterator over records in the order of their paths, which reads only the necessary blocks.
#[derive(Debug)]
pub struct List {
    storage: Arc<Storage>,
    metarange: Arc<Metarange>,
    folds: Folds,
    /// The least path to return next; `None` at the end.
    from: Option<Vec<u8>>,
    /// Whether that requires a seek instead of a step to the next record.
    jumps: bool,
    range: usize,
    current: Option<TableCursor>,
    ahead: RangesAhead,
    /// How many blocks of a range are read ahead: few at first, as the caller may stop soon.
    blocks_ahead: usize,
}

impl List {
    /// Lists the paths with `prefix`, from `from` on. With a delimiter, paths that continue after it are folded into common prefixes.
    pub fn new(
        storage: &Arc<Storage>,
        metarange: &Arc<Metarange>,
        prefix: &[u8],
        from: &[u8],
        delimiter: &[u8],
    ) -> Self {
        List {
            storage: storage.clone(),
            metarange: metarange.clone(),
            folds: Folds {
                prefix: prefix.to_vec(),
                delimiter: delimiter.to_vec(),
            },
            from: Some(prefix.max(from).to_vec()),
            jumps: true,
            range: 0,
            current: None,
            ahead: RangesAhead::default(),
            blocks_ahead: 1,
        }
    }

    /// The next paths, at most `count`, fewer if they are large; empty at the end.
    pub async fn next_batch(&mut self, count: usize) -> Result<Vec<Listed>> {
        let (mut found, mut size) = (Vec::new(), 0);
        while found.len() < count && size < BATCH_SIZE {
            let Some(listed) = self.next().await? else { break };
            size += match &listed {
                Listed::Record(key, value) => key.len() + value.len(),
                Listed::Prefix(key) => key.len(),
            };
            found.push(listed);
        }
        Ok(found)
    }

    /// The next path.
    pub async fn next(&mut self) -> Result<Option<Listed>> {
        if let Some(common) = self.at_start_of_range() {
            return Ok(Some(self.skip(common)));
        }
        if !self.move_on().await? {
            return Ok(self.end());
        }
        let Some(cursor) = &self.current else { return Ok(None) };
        let key = cursor.key()?;
        if !starts_with(key, &self.folds.prefix) {
            return Ok(self.end());
        }
        if let Some(common) = self.folds.common(key).map(<[u8]>::to_vec) {
            return Ok(Some(self.skip(common)));
        }
        Ok(Some(Listed::Record(key.to_vec(), cursor.value_bytes())))
    }

    fn end(&mut self) -> Option<Listed> {
        self.from = None;
        self.current = None;
        None
    }

    /// The common prefix of the next path, if that is the first of a range: it is in the metarange, so that nothing needs to be read.
    fn at_start_of_range(&self) -> Option<Vec<u8>> {
        let from = self.from.as_ref().filter(|_| self.jumps)?;
        let range = self.metarange.ranges().get(self.metarange.position(from))?;
        let common = self.folds.common(&range.min_key)?;
        (range.min_key >= *from).then(|| common.to_vec())
    }

    /// Returns a common prefix and skips its paths.
    fn skip(&mut self, common: Vec<u8>) -> Listed {
        self.from = after_prefix(&common);
        self.jumps = true;
        Listed::Prefix(common)
    }

    /// Moves to the next record; false if there is none.
    async fn move_on(&mut self) -> Result<bool> {
        if let (Some(_), Some(cursor), false) = (&self.from, &mut self.current, self.jumps) {
            if cursor.advance().await? {
                return Ok(true);
            }
            self.current = None;
            self.range += 1;
        }
        let Some(from) = self.from.clone() else {
            return Ok(false);
        };
        let jumps = std::mem::take(&mut self.jumps);
        if jumps {
            let range = self.metarange.position(&from);
            if range != self.range {
                self.current = None;
            }
            self.range = range;
        }
        if let Some(cursor) = &mut self.current {
            let mut reached = cursor.seek_near(&from)?;
            if !reached {
                if !cursor.reader().holds(&from) {
                    let found = self.folds.boundaries(cursor.reader(), &from, self.blocks_ahead).await?;
                    self.blocks_ahead = (2 * self.blocks_ahead).min(MOST_BLOCKS);
                    cursor.reader_mut().hold(&found).await?;
                }
                reached = cursor.seek(&from).await?;
            }
            if reached {
                return Ok(true);
            }
            self.range += 1;
        }
        while let Some(id) = self.metarange.ranges().get(self.range).map(|range| range.id.clone()) {
            let mut cursor = TableCursor::new(self.open(id).await?)?;
            if cursor.seek(&from).await? {
                self.current = Some(cursor);
                return Ok(true);
            }
            self.range += 1;
        }
        self.current = None;
        Ok(false)
    }

    /// Opens the next range, and in a folded listing starts to open those after it.
    async fn open(&mut self, id: TableId) -> Result<TableReader> {
        if self.folds.delimiter.is_empty() {
            return self.storage.open(&id).await;
        }
        let (storage, metarange) = (&self.storage, &self.metarange);
        match self.ahead.take(storage, metarange, &self.folds, self.range).await? {
            Some(reader) => Ok(reader),
            // The index finds the next common prefix without reading the blocks in between.
            None => self.storage.open(&id).await?.with_index().await,
        }
    }
}
