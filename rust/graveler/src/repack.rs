//! The offline packer: the many small ranges that a history of appends leaves become few of the size that the rule aims at.
//!
//! A commit that appends closes its range at its end, whatever its size, and nothing ever joins it with the next. Here neighbours that are
//! small are written as one, split by the rule. Large ranges stay as they are, and so does a boundary at which the rule itself would
//! break: other branches have it as well, and share what lies beside it.

use std::sync::Arc;

use crate::error::Result;
use crate::metarange::{Metarange, RangeInfo};
use crate::storage::Storage;
use crate::write::{MetarangeWriter, Rewrite, SplitRule, Written};

/// A range is small below this part of what the rule allows and aims at.
const SMALL: u64 = 4;

/// What packing came to.
#[derive(Debug, Clone)]
pub struct Repacked {
    /// The content, the same as before; none where there was nothing to pack.
    pub written: Option<Written>,
    /// How many ranges there were.
    pub ranges_before: u64,
}

/// Packs a content.
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

/// Ranges that are to be written together; one alone stays.
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
