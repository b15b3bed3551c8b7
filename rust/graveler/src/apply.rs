//! Applies sorted changes to a content, for a commit.
//!
//! ```text
//! base      [a ... f] [g ... m] [n ... t]           a range wholly before the next change is reused by reference;
//! changes               h   k           x           one that a change falls into is rewritten, up to where it ended;
//! result    [a ... f] [g ... m][n ... t] [x]        changes after the last range become a range of their own
//! ```

use std::sync::Arc;

use crate::change::Changes;
use crate::change_stream::ChangeStream;
use crate::error::Result;
use crate::metarange::Metarange;
use crate::storage::Storage;
use crate::write::{MetarangeWriter, Rewrite, SplitRule, Written};

/// How many changes of one range are applied at a time. Small in tests, so that most ranges take several rounds.
const AT_ONCE: usize = if cfg!(test) { 3 } else { 1 << 16 };

/// Counts of what changes did to a content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// New paths.
    pub added: u64,
    /// Removed paths.
    pub removed: u64,
    /// Paths whose identity changed.
    pub changed: u64,
}

impl Summary {
    /// Whether nothing changed.
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
    /// What was written; `None` if nothing changed.
    pub written: Option<Written>,
    /// The counts of changes.
    pub summary: Summary,
}

/// Applies changes to `base`. A deletion of a missing path, and a value with the same identity, change nothing; if no change has an
/// effect, nothing is written, unless `allow_empty`.
pub async fn apply(
    storage: &Arc<Storage>,
    base: &Metarange,
    changes: &Arc<Changes>,
    rule: SplitRule,
    allow_empty: bool,
) -> Result<Applied> {
    apply_stream(storage, base, ChangeStream::of(changes.clone()), rule, allow_empty).await
}

/// The same for a stream of changes: memory holds at most a few batches of changes and a few ranges.
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
