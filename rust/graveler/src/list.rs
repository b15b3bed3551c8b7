//! Paths of one content, by prefix.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::Result;
use crate::metarange::{Metarange, RangeInfo};
use crate::storage::{Storage, TableCursor};

/// What a listing finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// A path and its framed value.
    Record(Vec<u8>, Bytes),
    /// The start that several paths share, up to and with the delimiter.
    Prefix(Vec<u8>),
}

/// The ranges in which paths may lie that start with a prefix.
pub(crate) fn within<'a>(ranges: &'a [RangeInfo], prefix: &[u8]) -> &'a [RangeInfo] {
    let start = ranges.partition_point(|range| range.max_key.as_slice() < prefix);
    let end = match after_prefix(prefix) {
        Some(after) => ranges.partition_point(|range| range.min_key < after),
        None => ranges.len(),
    };
    ranges.get(start..end.max(start)).unwrap_or_default()
}

/// The first path after all that start with a prefix; none where there is no such path.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let (kept, _) = prefix.split_at_checked(last + 1)?;
    let mut after = kept.to_vec();
    if let Some(byte) = after.last_mut() {
        *byte += 1;
    }
    Some(after)
}

/// Records in the order of their paths, as they are asked for. Only the blocks that hold them are read.
#[derive(Debug)]
pub struct List {
    storage: Arc<Storage>,
    metarange: Arc<Metarange>,
    prefix: Vec<u8>,
    delimiter: Vec<u8>,
    /// The first path that is wanted next; none at the end.
    from: Option<Vec<u8>>,
    range: usize,
    current: Option<TableCursor>,
}

impl List {
    /// The paths that start with `prefix`, from `from` on. With a delimiter, paths that go on after it are one prefix together.
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
            prefix: prefix.to_vec(),
            delimiter: delimiter.to_vec(),
            from: Some(prefix.max(from).to_vec()),
            range: 0,
            current: None,
        }
    }

    /// The next paths, at most `count`; none at the end.
    pub async fn next_batch(&mut self, count: usize) -> Result<Vec<Listed>> {
        let mut found = Vec::new();
        while found.len() < count {
            match self.next().await? {
                Some(listed) => found.push(listed),
                None => break,
            }
        }
        Ok(found)
    }

    /// The next path.
    pub async fn next(&mut self) -> Result<Option<Listed>> {
        if !self.move_on().await? {
            self.from = None;
            self.current = None;
            return Ok(None);
        }
        let Some(cursor) = &self.current else { return Ok(None) };
        let key = cursor.key()?;
        let Some(rest) = key.strip_prefix(self.prefix.as_slice()) else {
            self.from = None;
            self.current = None;
            return Ok(None);
        };
        let ends = match self.delimiter.as_slice() {
            [] => None,
            delimiter => rest.windows(delimiter.len()).position(|window| window == delimiter),
        };
        if let Some(at) = ends {
            let end = self.prefix.len() + at + self.delimiter.len();
            let common = key.get(..end).unwrap_or(key).to_vec();
            self.from = after_prefix(&common);
            // A few more blocks of the same range, or a look at the index of another.
            self.current = None;
            return Ok(Some(Listed::Prefix(common)));
        }
        Ok(Some(Listed::Record(key.to_vec(), cursor.value_bytes())))
    }

    /// Moves to the next record; false if there is none.
    async fn move_on(&mut self) -> Result<bool> {
        let Some(from) = self.from.clone() else {
            return Ok(false);
        };
        if let Some(cursor) = &mut self.current {
            if cursor.advance().await? {
                return Ok(true);
            }
            self.range += 1;
        } else {
            self.range = self.metarange.position(&from);
        }
        while let Some(range) = self.metarange.ranges().get(self.range) {
            let mut cursor = TableCursor::new(self.storage.open(&range.id).await?)?;
            if cursor.seek(&from).await? {
                self.current = Some(cursor);
                return Ok(true);
            }
            self.range += 1;
        }
        self.current = None;
        Ok(false)
    }
}
