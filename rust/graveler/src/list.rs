//! Paths of one content, by prefix.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::Result;
use crate::metarange::{Metarange, RangeInfo};
use crate::storage::{Storage, TableCursor};

/// A batch of paths or differences takes no more when it is this large, in bytes.
pub(crate) const BATCH_SIZE: usize = 64 << 20;

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
    /// Whether that is somewhere else than after the current record.
    jumps: bool,
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
            jumps: true,
            range: 0,
            current: None,
        }
    }

    /// The next paths, at most `count`, and fewer of large ones; none at the end.
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
        if !key.starts_with(&self.prefix) {
            return Ok(self.end());
        }
        if let Some(common) = self.common(key) {
            return Ok(Some(self.skip(common)));
        }
        Ok(Some(Listed::Record(key.to_vec(), cursor.value_bytes())))
    }

    fn end(&mut self) -> Option<Listed> {
        self.from = None;
        self.current = None;
        None
    }

    /// What a path has in common with others, up to and with the delimiter, if it goes on after one.
    fn common(&self, key: &[u8]) -> Option<Vec<u8>> {
        let rest = key.strip_prefix(self.prefix.as_slice())?;
        let at = match self.delimiter.as_slice() {
            [] => None,
            delimiter => rest.windows(delimiter.len()).position(|window| window == delimiter),
        }?;
        key.get(..self.prefix.len() + at + self.delimiter.len())
            .map(<[u8]>::to_vec)
    }

    /// The same of the next path where that is the first of a range: the metarange knows it, and nothing needs to be read.
    fn at_start_of_range(&self) -> Option<Vec<u8>> {
        let from = self.from.as_ref().filter(|_| self.jumps)?;
        let range = self.metarange.ranges().get(self.metarange.position(from))?;
        self.common(&range.min_key).filter(|_| range.min_key >= *from)
    }

    /// A common prefix, of which no further path is looked at.
    fn skip(&mut self, common: Vec<u8>) -> Listed {
        self.from = after_prefix(&common);
        self.jumps = true;
        Listed::Prefix(common)
    }

    /// Moves to the next record; false if there is none.
    async fn move_on(&mut self) -> Result<bool> {
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
            let reached = match jumps {
                true => cursor.seek_on(&from).await?,
                false => cursor.advance().await?,
            };
            if reached {
                return Ok(true);
            }
            self.range += 1;
        }
        while let Some(range) = self.metarange.ranges().get(self.range) {
            let mut reader = self.storage.open(&range.id).await?;
            if !self.delimiter.is_empty() {
                // What lies between two common prefixes is passed over by the index.
                reader = reader.with_index().await?;
            }
            let mut cursor = TableCursor::new(reader)?;
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
