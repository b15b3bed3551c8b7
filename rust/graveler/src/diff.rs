//! The differences between two contents. Ranges that both share are not opened, so the cost depends on the ranges that differ.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::apply::Summary;
use crate::cluster::{clusters, overlapping, Cluster};
use crate::error::Result;
use crate::list::{starts_with, within, BATCH_SIZE};
use crate::metarange::{Metarange, RangeInfo};
use crate::storage::{RunCursor, Storage};
use crate::value::identity_of;

/// One path that differs: at least one side has a value, and the identities differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The path.
    pub key: Vec<u8>,
    /// The framed value on the left, if the path is there.
    pub left: Option<Bytes>,
    /// The framed value on the right, if the path is there.
    pub right: Option<Bytes>,
}

/// An iterator over the differences in the order of their paths.
#[derive(Debug)]
pub struct Diff {
    storage: Arc<Storage>,
    waiting: VecDeque<(Vec<RangeInfo>, Vec<RangeInfo>)>,
    current: Option<(RunCursor, RunCursor)>,
    prefix: Vec<u8>,
    /// Whether only the blocks of large ranges that may have the prefix are read, for a caller that needs only the first difference.
    seeks: bool,
}

impl Diff {
    /// The differences between two contents among the paths that start with `prefix`.
    pub fn new(storage: &Arc<Storage>, left: &Metarange, right: &Metarange, prefix: &[u8]) -> Self {
        let (left, right) = (within(left.ranges(), prefix), within(right.ranges(), prefix));
        let waiting = clusters(left, right).into_iter().filter_map(|cluster| match cluster {
            Cluster::Same(_) => None,
            Cluster::Different { left: l, right: r } => Some((left.get(l)?.to_vec(), right.get(r)?.to_vec())),
        });
        Diff {
            storage: storage.clone(),
            waiting: waiting.collect(),
            current: None,
            prefix: prefix.to_vec(),
            seeks: false,
        }
    }

    /// The same for a caller that needs only the first difference: reads only the necessary blocks of ranges.
    pub(crate) fn first(storage: &Arc<Storage>, left: &Metarange, right: &Metarange, prefix: &[u8]) -> Self {
        let mut diff = Self::new(storage, left, right, prefix);
        diff.seeks = true;
        diff
    }

    /// Whether the metaranges alone prove a difference: a range begins or ends with a path that no range of the other side covers, or the
    /// sides have different numbers of paths.
    pub(crate) fn is_certain(&self) -> bool {
        let alone = |ranges: &[RangeInfo], others: &[RangeInfo]| {
            let ends = ranges.iter().flat_map(|range| [&range.min_key, &range.max_key]);
            let mut inside = ends.filter(|key| key.starts_with(&self.prefix));
            inside.any(|key| overlapping(others, key, key).is_empty())
        };
        let count = |ranges: &[RangeInfo]| {
            let mut counts = ranges
                .iter()
                .map(|range| range.is_within(&self.prefix).then_some(range.count));
            counts.try_fold(0u64, |sum, count| Some(sum.saturating_add(count?)))
        };
        self.waiting.iter().any(|(left, right)| {
            let counts = count(left).zip(count(right));
            alone(left, right) || alone(right, left) || counts.is_some_and(|(left, right)| left != right)
        })
    }

    /// The next differences, at most `count`, fewer if they are large; empty at the end.
    pub async fn next_batch(&mut self, count: usize) -> Result<Vec<Difference>> {
        let (mut found, mut size) = (Vec::new(), 0);
        while found.len() < count && size < BATCH_SIZE {
            let Some(difference) = self.next().await? else { break };
            let sides = [&difference.left, &difference.right].into_iter().flatten();
            size += difference.key.len() + sides.map(Bytes::len).sum::<usize>();
            found.push(difference);
        }
        Ok(found)
    }

    /// The next difference.
    pub async fn next(&mut self) -> Result<Option<Difference>> {
        loop {
            let Some((left, right)) = &mut self.current else {
                let Some((left, right)) = self.waiting.pop_front() else {
                    return Ok(None);
                };
                self.current = Some(match self.seeks {
                    true => tokio::try_join!(
                        RunCursor::within(self.storage.clone(), &left, &self.prefix),
                        RunCursor::within(self.storage.clone(), &right, &self.prefix),
                    )?,
                    false => {
                        let mut left = RunCursor::new(self.storage.clone(), &left);
                        let mut right = RunCursor::new(self.storage.clone(), &right);
                        left.advance_to(&self.prefix).await?;
                        right.advance_to(&self.prefix).await?;
                        (left, right)
                    }
                });
                continue;
            };
            // Paths are sorted: the following ones do not have the prefix either.
            let is_past = |key: Option<&[u8]>| {
                key.is_none_or(|key| !starts_with(key, &self.prefix) && key > self.prefix.as_slice())
            };
            if is_past(left.key()?) && is_past(right.key()?) {
                self.current = None;
                continue;
            }
            let order = match (left.key()?, right.key()?) {
                (None, None) => {
                    self.current = None;
                    continue;
                }
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(a), Some(b)) => a.cmp(b),
            };
            let equal = order.is_eq() && identity_of(left.value())? == identity_of(right.value())?;
            let difference = (!equal).then(|| Difference {
                key: if order.is_le() {
                    left.owned_key()
                } else {
                    right.owned_key()
                },
                left: order.is_le().then(|| left.value_bytes()),
                right: order.is_ge().then(|| right.value_bytes()),
            });
            if order.is_eq() {
                left.skip_same(right).await?;
            }
            if order.is_le() {
                left.advance().await?;
            }
            if order.is_ge() {
                right.advance().await?;
            }
            // Only one side may be past the prefix.
            if let Some(found) = difference.filter(|found| starts_with(&found.key, &self.prefix)) {
                return Ok(Some(found));
            }
        }
    }
}

/// Counts the differing paths: ranges that overlap no range of the other side are counted without opening them.
pub async fn summary(storage: &Arc<Storage>, left: &Metarange, right: &Metarange) -> Result<Summary> {
    let mut summary = Summary::default();
    let mut open = Vec::new();
    for cluster in clusters(left.ranges(), right.ranges()) {
        let Cluster::Different { left: l, right: r } = cluster else {
            continue;
        };
        let l = left.ranges().get(l).unwrap_or_default();
        let r = right.ranges().get(r).unwrap_or_default();
        match (l.is_empty(), r.is_empty()) {
            (_, true) => summary.removed += l.iter().map(|range| range.count).sum::<u64>(),
            (true, _) => summary.added += r.iter().map(|range| range.count).sum::<u64>(),
            _ => open.push((l.to_vec(), r.to_vec())),
        }
    }
    let mut diff = Diff {
        storage: storage.clone(),
        waiting: open.into(),
        current: None,
        prefix: Vec::new(),
        seeks: false,
    };
    while let Some(found) = diff.next().await? {
        match (found.left.is_some(), found.right.is_some()) {
            (true, true) => summary.changed += 1,
            (true, false) => summary.removed += 1,
            _ => summary.added += 1,
        }
    }
    Ok(summary)
}
