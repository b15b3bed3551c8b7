//! Iterates over the records of consecutive ranges.

use std::sync::Arc;

use bytes::Bytes;

use super::fetch::Fetches;
use super::{Storage, TableCursor};
use crate::error::Result;
use crate::metarange::RangeInfo;

/// A cursor over consecutive ranges: before the first record, at one, or after the last.
#[derive(Debug)]
pub(crate) struct RunCursor {
    fetches: Fetches,
    current: Option<TableCursor>,
}

impl RunCursor {
    pub(crate) fn new(storage: Arc<Storage>, ranges: &[RangeInfo]) -> Self {
        RunCursor {
            fetches: Fetches::new(storage, ranges.iter().cloned()),
            current: None,
        }
    }

    /// A cursor at the first record whose key is not before `prefix`, for a caller that needs only keys with the prefix.
    pub(crate) async fn within(storage: Arc<Storage>, ranges: &[RangeInfo], prefix: &[u8]) -> Result<Self> {
        let mut run = RunCursor {
            fetches: Fetches::within(storage, ranges.iter().cloned(), prefix),
            current: None,
        };
        while let Some(reader) = run.fetches.next().await? {
            let mut cursor = TableCursor::new(reader)?;
            if cursor.seek(prefix).await? {
                run.current = Some(cursor);
                break;
            }
        }
        Ok(run)
    }

    /// To the next record; false after the last.
    #[inline]
    pub(crate) async fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some(cursor) = &mut self.current {
                if cursor.advance().await? {
                    return Ok(true);
                }
            }
            match self.fetches.next().await? {
                Some(reader) => self.current = Some(TableCursor::new(reader)?),
                None => {
                    self.current = None;
                    return Ok(false);
                }
            }
        }
    }

    /// Skips the following blocks and ranges that are the same on both sides; both cursors are at the same record.
    pub(crate) async fn skip_same(&mut self, other: &mut RunCursor) -> Result<()> {
        match (&mut self.current, &mut other.current) {
            (Some(ours), Some(theirs)) => ours.skip_same(theirs).await,
            _ => Ok(()),
        }
    }

    /// To the first record, from the current one on, whose key is not before `key`; false if there is none.
    pub(crate) async fn advance_to(&mut self, key: &[u8]) -> Result<bool> {
        loop {
            if self.key()?.is_some_and(|found| found >= key) {
                return Ok(true);
            }
            if !self.advance().await? {
                return Ok(false);
            }
        }
    }

    /// The record's key; `None` before the first and after the last.
    #[inline]
    pub(crate) fn key(&self) -> Result<Option<&[u8]>> {
        match &self.current {
            // Before its first record a cursor has no key.
            Some(cursor) => Ok(cursor.key().ok()),
            None => Ok(None),
        }
    }

    /// The record's framed value.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], TableCursor::value)
    }

    /// A copy of the record's key; empty if there is none.
    pub(crate) fn owned_key(&self) -> Vec<u8> {
        let key = self.current.as_ref().and_then(|cursor| cursor.key().ok());
        key.unwrap_or_default().to_vec()
    }

    /// The record's framed value, sharing memory with the block.
    pub(crate) fn value_bytes(&self) -> Bytes {
        self.current.as_ref().map(TableCursor::value_bytes).unwrap_or_default()
    }
}
