//! Three-way merges of two contents with a common base.
//!
//! ```text
//! a path's value   base  source  dest   result
//!                   x      x      y     y                   one side changed it: that side's
//!                   x      y      y     y                   both did the same
//!                   x      y      z     a conflict, or the value of the side that the strategy prefers
//! ```
//!
//! where a missing path is a value like any other, and values are compared by their identities. The base's value counts only at the same
//! path: lakeFS compares with the base's next path in two places, and so loses a file or a conflict.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;

use crate::cluster::{clusters, overlapping, Cluster};
use crate::error::Result;
use crate::metarange::{Metarange, RangeInfo};
use crate::storage::{RunCursor, Storage};
use crate::value::identity_of;
use crate::write::{MetarangeWriter, SplitRule, Written};

/// How conflicts are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Not at all: conflicts prevent the merge.
    #[default]
    None,
    /// The destination's value stays.
    DestWins,
    /// The source's value is taken.
    SourceWins,
}

/// A path that both sides changed differently. A side that deleted it has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The path.
    pub key: Vec<u8>,
    /// The framed value of the base.
    pub base: Option<Bytes>,
    /// The framed value of the source.
    pub source: Option<Bytes>,
    /// The framed value of the destination.
    pub dest: Option<Bytes>,
}

/// How to merge.
#[derive(Debug, Clone, Copy)]
pub struct MergeOptions {
    /// How conflicts are resolved.
    pub strategy: Strategy,
    /// The split rule of new ranges.
    pub rule: SplitRule,
    /// Only look for conflicts; write nothing.
    pub dry_run: bool,
    /// How many conflicts to list; all are counted.
    pub max_conflicts: usize,
}

/// The result of a merge.
#[derive(Debug, Clone)]
pub struct Merged {
    /// The merged content; `None` if there were conflicts and no strategy, or in a dry run.
    pub metarange: Option<Arc<Metarange>>,
    /// What was written; `None` if one side's content was the result.
    pub written: Option<Written>,
    /// The first conflicts, including those that the strategy resolved.
    pub conflicts: Vec<Conflict>,
    /// How many conflicts there were.
    pub conflict_count: u64,
}

/// Merges `source` into `dest`, with the common base `base`.
pub async fn merge(
    storage: &Arc<Storage>,
    base: &Arc<Metarange>,
    source: &Arc<Metarange>,
    dest: &Arc<Metarange>,
    options: MergeOptions,
) -> Result<Merged> {
    let taken = |metarange: &Arc<Metarange>| Merged {
        metarange: Some(metarange.clone()),
        written: None,
        conflicts: Vec::new(),
        conflict_count: 0,
    };
    if source.ranges() == base.ranges() || source.ranges() == dest.ranges() {
        return Ok(taken(dest));
    }
    if dest.ranges() == base.ranges() {
        return Ok(taken(source));
    }
    let mut merger = Merger {
        storage: storage.clone(),
        base: base.ranges(),
        writer: (!options.dry_run).then(|| MetarangeWriter::new(storage.clone(), options.rule)),
        options,
        conflicts: Vec::new(),
        conflict_count: 0,
    };
    for cluster in clusters(source.ranges(), dest.ranges()) {
        match cluster {
            Cluster::Same(at) => merger.take(source.ranges().get(at..=at).unwrap_or_default()).await?,
            Cluster::Different { left, right } => {
                let source = source.ranges().get(left).unwrap_or_default();
                let dest = dest.ranges().get(right).unwrap_or_default();
                merger.cluster(source, dest).await?;
            }
        }
    }
    let written = match merger.writer {
        Some(writer) => Some(writer.finish().await?),
        None => None,
    };
    Ok(Merged {
        metarange: written.as_ref().map(|written| written.metarange.clone()),
        written,
        conflicts: merger.conflicts,
        conflict_count: merger.conflict_count,
    })
}

struct Merger<'a> {
    storage: Arc<Storage>,
    base: &'a [RangeInfo],
    /// `None` once a conflict prevents the merge, or in a dry run.
    writer: Option<MetarangeWriter>,
    options: MergeOptions,
    conflicts: Vec<Conflict>,
    conflict_count: u64,
}

impl Merger<'_> {
    async fn take(&mut self, ranges: &[RangeInfo]) -> Result<()> {
        if let Some(writer) = &mut self.writer {
            for range in ranges {
                writer.write_range(range.clone()).await?;
            }
        }
        Ok(())
    }

    async fn cluster(&mut self, source: &[RangeInfo], dest: &[RangeInfo]) -> Result<()> {
        let Some((min_key, max_key)) = bounds(source, dest) else {
            return Ok(());
        };
        let base = self
            .base
            .get(overlapping(self.base, min_key, max_key))
            .unwrap_or_default();
        let same =
            |a: &[RangeInfo], b: &[RangeInfo]| a.iter().map(|range| &range.id).eq(b.iter().map(|range| &range.id));
        if same(base, source) {
            self.take(dest).await
        } else if same(base, dest) {
            self.take(source).await
        } else {
            self.records(base, source, dest).await
        }
    }

    async fn records(&mut self, base: &[RangeInfo], source: &[RangeInfo], dest: &[RangeInfo]) -> Result<()> {
        let mut base = RunCursor::new(self.storage.clone(), base);
        let mut source = RunCursor::new(self.storage.clone(), source);
        let mut dest = RunCursor::new(self.storage.clone(), dest);
        source.advance().await?;
        dest.advance().await?;
        loop {
            let order = match (source.key()?, dest.key()?) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => a.cmp(b),
            };
            let first = if order.is_le() { source.key()? } else { dest.key()? };
            let key = first.unwrap_or_default();
            let there = base.advance_to(key).await? && base.key()? == Some(key);
            let values = Values {
                base: there.then(|| base.value()),
                source: order.is_le().then(|| source.value()),
                dest: order.is_ge().then(|| dest.value()),
            };
            let result = match values.decide()? {
                Decision::Take(value) => value,
                Decision::Conflict => {
                    self.conflict_count += 1;
                    if self.conflicts.len() < self.options.max_conflicts {
                        self.conflicts.push(Conflict {
                            key: key.to_vec(),
                            base: values.base.map(Bytes::copy_from_slice),
                            source: values.source.map(Bytes::copy_from_slice),
                            dest: values.dest.map(Bytes::copy_from_slice),
                        });
                    }
                    match self.options.strategy {
                        Strategy::SourceWins => values.source,
                        Strategy::DestWins => values.dest,
                        Strategy::None => {
                            self.writer = None;
                            None
                        }
                    }
                }
            };
            if let (Some(writer), Some(value)) = (&mut self.writer, result) {
                writer.write_record(key, value).await?;
            }
            if order.is_le() {
                source.advance().await?;
            }
            if order.is_ge() {
                dest.advance().await?;
            }
        }
    }
}

/// The values of the three contents at one path.
struct Values<'a> {
    base: Option<&'a [u8]>,
    source: Option<&'a [u8]>,
    dest: Option<&'a [u8]>,
}

enum Decision<'a> {
    Take(Option<&'a [u8]>),
    Conflict,
}

impl<'a> Values<'a> {
    fn decide(&self) -> Result<Decision<'a>> {
        let identity = |value: Option<&'a [u8]>| value.map(identity_of).transpose();
        let (base, source, dest) = (identity(self.base)?, identity(self.source)?, identity(self.dest)?);
        Ok(if source == dest || dest == base {
            Decision::Take(self.source)
        } else if source == base {
            Decision::Take(self.dest)
        } else {
            Decision::Conflict
        })
    }
}

fn bounds<'a>(source: &'a [RangeInfo], dest: &'a [RangeInfo]) -> Option<(&'a [u8], &'a [u8])> {
    let firsts = [source.first(), dest.first()].into_iter().flatten();
    let lasts = [source.last(), dest.last()].into_iter().flatten();
    let min = firsts.map(|range| range.min_key.as_slice()).min()?;
    let max = lasts.map(|range| range.max_key.as_slice()).max()?;
    Some((min, max))
}
