//! A commit: sorted changes laid over a content.
//!
//! ```text
//! base      [a ... f] [g ... m] [n ... t]           a range wholly before the next change is taken over by reference;
//! changes               h   k           x           one that a change may fall into is written anew, up to where it ended;
//! result    [a ... f] [g ... m][n ... t] [x]        what lies behind the last range becomes one of its own
//! ```

use std::sync::Arc;

use crate::change::{Change, Changes};
use crate::error::Result;
use crate::metarange::{Metarange, RangeInfo};
use crate::storage::{Fetches, Storage, TableCursor};
use crate::value::identity_of;
use crate::write::{MetarangeWriter, SplitRule, Written};

/// What changes did to a content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Paths that were not there.
    pub added: u64,
    /// Paths that were and are gone.
    pub removed: u64,
    /// Paths whose identity is another.
    pub changed: u64,
}

impl Summary {
    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        *self == Summary::default()
    }
}

/// A content with changes.
#[derive(Debug, Clone)]
pub struct Applied {
    /// What was written; nothing where nothing changed.
    pub written: Option<Written>,
    /// What the changes did.
    pub summary: Summary,
}

/// Lays changes over `base`. A deletion of what is not there, and a value of the same identity, change nothing; if all are like that,
/// nothing is written, unless `allow_empty`.
pub async fn apply(
    storage: &Arc<Storage>,
    base: &Metarange,
    changes: &Changes,
    rule: SplitRule,
    allow_empty: bool,
) -> Result<Applied> {
    let mut work = Work {
        writer: MetarangeWriter::new(storage.clone(), rule),
        changes,
        next: 0,
        summary: Summary::default(),
    };
    let mut fetches = Fetches::new(storage.clone(), touched(base, changes));
    for range in base.ranges() {
        match work.change() {
            Some(change) if change.key <= range.max_key.as_slice() => {
                if let Some(reader) = fetches.next().await? {
                    work.rewrite(TableCursor::new(reader)?, &range.max_key).await?;
                }
            }
            _ => work.writer.write_range(range.clone()).await?,
        }
    }
    while let Some(change) = work.change() {
        work.add(change).await?;
    }
    let summary = work.summary;
    let written = if summary.is_empty() && !allow_empty {
        None
    } else {
        Some(work.writer.finish().await?)
    };
    Ok(Applied { written, summary })
}

/// The ranges that changes may fall into: up to the last key of each, from the last key of the one before.
fn touched(base: &Metarange, changes: &Changes) -> Vec<RangeInfo> {
    let mut next = 0;
    let mut found = Vec::new();
    for range in base.ranges() {
        let first = next;
        while changes
            .get(next)
            .is_some_and(|change| change.key <= range.max_key.as_slice())
        {
            next += 1;
        }
        if next > first {
            found.push(range.clone());
        }
    }
    found
}

struct Work<'a> {
    writer: MetarangeWriter,
    changes: &'a Changes,
    next: usize,
    summary: Summary,
}

impl<'a> Work<'a> {
    fn change(&self) -> Option<Change<'a>> {
        self.changes.get(self.next)
    }

    /// A change at a path that the base does not have.
    async fn add(&mut self, change: Change<'_>) -> Result<()> {
        self.next += 1;
        if let Some(value) = change.value {
            self.summary.added += 1;
            self.writer.write_record(change.key, value).await?;
        }
        Ok(())
    }

    async fn rewrite(&mut self, mut range: TableCursor, max_key: &[u8]) -> Result<()> {
        while range.advance().await? {
            let key = range.key()?;
            while let Some(change) = self.change().filter(|change| change.key < key) {
                self.add(change).await?;
            }
            match self.change().filter(|change| change.key == key) {
                None => self.writer.write_record(key, range.value()).await?,
                Some(change) => {
                    self.next += 1;
                    self.replace(change, range.value()).await?;
                }
            }
        }
        // What a range holds less than its metarange says.
        while let Some(change) = self.change().filter(|change| change.key <= max_key) {
            self.add(change).await?;
        }
        Ok(())
    }

    async fn replace(&mut self, change: Change<'_>, base: &[u8]) -> Result<()> {
        let Some(value) = change.value else {
            self.summary.removed += 1;
            return Ok(());
        };
        if identity_of(value)? == identity_of(base)? {
            return self.writer.write_record(change.key, base).await;
        }
        self.summary.changed += 1;
        self.writer.write_record(change.key, value).await
    }
}
