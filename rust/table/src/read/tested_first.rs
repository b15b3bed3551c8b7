//! Filters that are asked before there are chunks: where a row's other columns are large beside those of the filter, such as blobs and
//! vectors beside a key, a chunk of a few rows would hardly be worth its task, and one of many may have any size if all of them are kept.

use std::ops::Range;
use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use super::chunk::{kept_rows, ChunkPlan, ChunkSource};
use super::chunking::threads;
use super::rows::{count, groups_by, intersect};
use super::scan::{joined, Chunk};
use crate::error::Result;

/// The chunks of what the filter keeps of pieces of a fragment. `next_size` says how many rows each chunk has, `most` among how many they lie,
/// all of which are read where they have too many columns to be read one by one; `bytes_of` how many bytes so many rows take.
pub(super) fn tested_first(
    plan: Arc<ChunkPlan>,
    source: Arc<ChunkSource>,
    pieces: impl Iterator<Item = Vec<Range<u64>>> + Send + 'static,
    unit: u64,
    next_size: impl FnMut() -> u64 + Clone + Send + 'static,
    most: impl Fn() -> u64 + Clone + Send + 'static,
    bytes_of: impl Fn(u64) -> u64 + Clone + Send + 'static,
) -> BoxStream<'static, Result<Chunk>> {
    let asked = source.clone();
    let tested = stream::iter(pieces).map(move |rows| {
        let (plan, source) = (plan.clone(), asked.clone());
        joined(tokio::spawn(async move {
            let kept = kept_rows(&plan, &source, &rows).await?;
            Ok((rows, kept))
        }))
    });
    let side_by_side = usize::try_from(threads()).unwrap_or(1).max(1);
    let chunks = tested.buffered(side_by_side).map_ok(move |(rows, kept)| {
        let (source, bytes_of) = (source.clone(), bytes_of.clone());
        let kept = near(kept, most());
        let next_size = next_size.clone();
        let chunks = kept
            .into_iter()
            .flat_map(move |kept| groups_by(kept, unit, next_size.clone()));
        let chunks = chunks.map(move |kept| {
            let rows = match (kept.first(), kept.last()) {
                (Some(first), Some(last)) => intersect(&rows, std::slice::from_ref(&(first.start..last.end))),
                _ => Vec::new(),
            };
            Ok(Chunk {
                source: source.clone(),
                bytes: bytes_of(count(&rows)),
                rows,
                kept: Some(kept),
            })
        });
        stream::iter(chunks)
    });
    chunks.try_flatten().boxed()
}

/// Sorted ranges in groups, each of which lies among `most` rows, or is one range.
fn near(kept: Vec<Range<u64>>, most: u64) -> Vec<Vec<Range<u64>>> {
    let mut groups: Vec<Vec<Range<u64>>> = Vec::new();
    for range in kept {
        match groups.last_mut() {
            Some(group) if group.first().is_some_and(|first| range.end - first.start <= most) => group.push(range),
            _ => groups.push(vec![range]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(range: Range<u64>) -> Vec<Range<u64>> {
        std::iter::once(range).collect()
    }

    #[test]
    fn test_rows_of_a_chunk_lie_near_one_another() {
        assert_eq!(
            near(vec![0..1, 5..6, 9..12, 40..90], 12),
            vec![vec![0..1, 5..6, 9..12], one(40..90)]
        );
        assert_eq!(near(vec![0..1, 12..13], 12).len(), 2);
        assert_eq!(near(vec![0..100, 100..101], 12), vec![one(0..100), one(100..101)]);
        assert!(near(Vec::new(), 12).is_empty());
    }
}
