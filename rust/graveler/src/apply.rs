//! A commit: sorted changes laid over a content.
//!
//! ```text
//! base      [a ... f] [g ... m] [n ... t]           a range wholly before the next change is taken over by reference;
//! changes               h   k           x           one that a change may fall into is written anew, up to where it ended;
//! result    [a ... f] [g ... m][n ... t] [x]        what lies behind the last range becomes one of its own
//! ```

use std::sync::Arc;

use crate::change::Changes;
use crate::change_stream::ChangeStream;
use crate::error::Result;
use crate::metarange::Metarange;
use crate::storage::Storage;
use crate::write::{MetarangeWriter, Rewrite, SplitRule, Written};

/// So many changes of one range are laid over its records at once; more of them take turns. In tests they nearly always do.
const AT_ONCE: usize = if cfg!(test) { 3 } else { 1 << 16 };

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

impl std::ops::AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.added += other.added;
        self.removed += other.removed;
        self.changed += other.changed;
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
    changes: &Arc<Changes>,
    rule: SplitRule,
    allow_empty: bool,
) -> Result<Applied> {
    apply_stream(storage, base, ChangeStream::of(changes.clone()), rule, allow_empty).await
}

/// The same for changes that come some at a time: never more than a few batches of them are held, and a few ranges.
pub async fn apply_stream(
    storage: &Arc<Storage>,
    base: &Metarange,
    mut changes: ChangeStream,
    rule: SplitRule,
    allow_empty: bool,
) -> Result<Applied> {
    let mut writer = MetarangeWriter::new(storage.clone(), rule);
    for range in base.ranges() {
        if changes
            .next_key()
            .await?
            .is_none_or(|key| key > range.max_key.as_slice())
        {
            writer.write_range(range.clone()).await?;
            continue;
        }
        let mut from = Vec::new();
        loop {
            let taken = changes.take(Some(&range.max_key), AT_ONCE).await?;
            let next = changes.next_key().await?;
            let to = next.filter(|key| *key <= range.max_key.as_slice()).map(<[u8]>::to_vec);
            let part = Rewrite {
                range: range.clone(),
                from,
                to: to.clone(),
                changes: taken,
            };
            writer.rewrite(part).await?;
            match to {
                Some(to) => from = to,
                None => break,
            }
        }
    }
    loop {
        let taken = changes.take(None, AT_ONCE).await?;
        if taken.is_empty() {
            break;
        }
        for slice in taken {
            writer.write_changes(&slice.changes, slice.numbers).await?;
        }
    }
    let ranges = writer.end().await?;
    let summary = ranges.summary;
    let written = if summary.is_empty() && !allow_empty {
        None
    } else {
        Some(ranges.write().await?)
    };
    Ok(Applied { written, summary })
}
