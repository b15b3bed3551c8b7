//! Pruning by statistics: files of version 0.1 hold bounds for each group of rows, others may have zone maps.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use esker_expr::{ColumnRanges, Predicate};

use super::rows::intersect;

/// How many groups with statistics a scan has seen, and how many of them it pruned.
#[derive(Debug, Default)]
pub struct GroupCounts {
    seen: AtomicU64,
    skipped: AtomicU64,
}

impl GroupCounts {
    /// Groups with statistics seen so far.
    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// Groups pruned so far.
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }
}

/// The rows of one fragment without those in groups that the filter prunes. A column that is not in a file with statistics is unbounded.
pub(super) fn rule_out(
    filter: &Predicate,
    groups: Vec<(Vec<u64>, ColumnRanges)>,
    rows: Vec<Range<u64>>,
    counts: &GroupCounts,
) -> Vec<Range<u64>> {
    let mut left = rows;
    for (offsets, ranges) in groups {
        if ranges.is_empty() || left.is_empty() {
            continue;
        }
        let bounds: Vec<Range<u64>> = offsets
            .iter()
            .zip(offsets.iter().skip(1))
            .map(|(a, b)| *a..*b)
            .collect();
        let sizes: Vec<u64> = bounds.iter().map(|group| group.end - group.start).collect();
        let kept = filter.prune(&ranges, &sizes);
        let skipped = kept.iter().filter(|kept| !**kept).count();
        counts.seen.fetch_add(kept.len() as u64, Ordering::Relaxed);
        counts.skipped.fetch_add(skipped as u64, Ordering::Relaxed);
        if skipped > 0 {
            let kept = bounds
                .into_iter()
                .zip(kept)
                .filter(|(_, kept)| *kept)
                .map(|(group, _)| group);
            left = intersect(&left, &kept.collect::<Vec<_>>());
        }
    }
    left
}
