//! Repacking (offline): joins the many small ranges that a history of appends leaves into few of the split rule's target size.
//!
//! A commit that appends closes its last range at any size, and later commits never join it with the next. Here adjacent small ranges are
//! rewritten together, split by the rule. Large ranges stay as they are, and so does a boundary at which the rule itself would break: other
//! branches have the same boundary, and share the ranges next to it.

use std::sync::Arc;

use crate::error::Result;
use crate::metarange::{Metarange, RangeInfo};
use crate::storage::Storage;
use crate::write::{MetarangeWriter, Rewrite, SplitRule, Written};

/// A range is small if it is below the rule's largest size and its average number of entries, both divided by this.
const SMALL: u64 = 4;

/// The result of repacking.
#[derive(Debug, Clone)]
pub struct Repacked {
    /// The rewritten content, with the same records; `None` if there was nothing to pack.
    pub written: Option<Written>,
    /// How many ranges there were.
    pub ranges_before: u64,
}

/// Repacks a content.
pub async fn repack(storage: &Arc<Storage>, metarange: &Metarange, rule: SplitRule) -> Result<Repacked> {
    let ranges = metarange.ranges();
    let ranges_before = ranges.len() as u64;
    let runs = runs(ranges, rule);
    if runs.iter().all(|run| run.len() == 1) {
        return Ok(Repacked {
            written: None,
            ranges_before,
        });
    }
    let mut writer = MetarangeWriter::new(storage.clone(), rule);
    for run in runs {
        if let [range] = run {
            writer.write_range(range.clone()).await?;
            continue;
        }
        for range in run {
            writer.rewrite(Rewrite::all_of(range)).await?;
        }
    }
    Ok(Repacked {
        written: Some(writer.finish().await?),
        ranges_before,
    })
}

/// Runs of adjacent ranges to rewrite together; a run of one stays as it is.
fn runs(ranges: &[RangeInfo], rule: SplitRule) -> Vec<&[RangeInfo]> {
    let joins = |a: &RangeInfo, b: &RangeInfo| {
        is_small(a, rule) && is_small(b, rule) && !rule.breaks_after(&a.max_key, rule.min_size())
    };
    ranges.chunk_by(|a, b| joins(a, b)).collect()
}

fn is_small(range: &RangeInfo, rule: SplitRule) -> bool {
    range.estimated_size < (rule.max_size() / SMALL).max(rule.min_size())
        && range.count < (rule.raggedness() / SMALL).max(2)
}
