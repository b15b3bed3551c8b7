//! Filters that are asked before there are chunks: where a row's other columns are large beside those of the filter, such as blobs and
//! vectors beside a key, a chunk of a few rows would hardly be worth its task, and one of many may have any size if all of them are kept.

use std::ops::Range;
use std::sync::Arc;

use futures::future::FutureExt;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use super::chunk::{kept_rows, ChunkPlan, ChunkSource};
use super::chunking::threads;
use super::rows::{count, groups_within, intersect, Most};
use super::scan::{here, joined, Chunk};
use crate::error::Result;

/// The chunks of what the filter keeps of pieces of a fragment. `next_size` says how many rows each chunk has, `most` among how many they lie,
/// all of which are read where they have too many columns to be read one by one; `bytes_of` how many bytes so many rows take; `is_alone`
/// whether there is no other fragment.
#[allow(clippy::too_many_arguments)] // What a scan knows of a fragment, which nothing else groups.
pub(super) fn tested_first(
    plan: Arc<ChunkPlan>,
    source: Arc<ChunkSource>,
    mut pieces: impl Iterator<Item = Vec<Range<u64>>> + Send + 'static,
    unit: u64,
    next_size: impl FnMut() -> u64 + Clone + Send + 'static,
    most: impl Fn() -> u64 + Clone + Send + 'static,
    bytes_of: impl Fn(u64) -> u64 + Clone + Send + 'static,
    is_alone: bool,
) -> BoxStream<'static, Result<Chunk>> {
    let asked = source.clone();
    let first: Vec<Vec<Range<u64>>> = pieces.by_ref().take(2).collect();
    // One piece is asked where it is waited for.
    let is_one = first.len() < 2;
    let is_alone = is_alone && is_one;
    let tested = stream::iter(first.into_iter().chain(pieces)).map(move |rows| {
        let (plan, source) = (plan.clone(), asked.clone());
        let work = async move {
            let kept = kept_rows(&plan, &source, &rows).await?;
            Ok((rows, kept))
        };
        match is_one {
            true => here(work).left_future(),
            false => joined(tokio::spawn(work)).right_future(),
        }
    });
    let side_by_side = usize::try_from(threads()).unwrap_or(1).max(1);
    let chunks = tested.buffered(side_by_side).map_ok(move |(rows, kept)| {
        let (source, bytes_of) = (source.clone(), bytes_of.clone());
        let far = source.worth_skipping();
        let groups = near(kept.rows.clone(), most(), far);
        let most_of_one = next_size.clone()();
        let is_whole = |group: &Vec<Range<u64>>| match (group.first(), group.last()) {
            (Some(first), Some(last)) => is_sparse(group, far) || last.end <= source.page_ends.most_end(first.start),
            _ => false,
        };
        let is_alone =
            is_alone && count(&kept.rows) <= most_of_one && matches!(groups.as_slice(), [only] if is_whole(only));
        let next_size = next_size.clone();
        let ends = source.clone();
        let parts = groups.into_iter().flat_map(move |group| {
            // Of pages whose rows are skipped little is read.
            let by_pages = !is_sparse(&group, far);
            let ends = ends.clone();
            let most = move |start| match by_pages {
                true => ends.page_ends.most(start, None),
                false => Most::default(),
            };
            groups_within(group, unit, next_size.clone(), most)
        });
        let mut skipped = 0;
        let chunks = parts.map(move |part| {
            let rows = match (part.first(), part.last()) {
                (Some(first), Some(last)) => intersect(&rows, std::slice::from_ref(&(first.start..last.end))),
                _ => Vec::new(),
            };
            let before = skipped;
            skipped += count(&part);
            // Where the rows between them are skipped they are not in memory.
            let in_memory = match is_sparse(&part, far) {
                true => count(&part),
                false => count(&rows),
            };
            Ok(Chunk {
                source: source.clone(),
                bytes: bytes_of(in_memory),
                rows,
                deleted: None,
                kept: Some(kept.part(part, before)),
                is_alone,
            })
        });
        stream::iter(chunks)
    });
    chunks.try_flatten().boxed()
}

/// Sorted ranges in groups, each of which lies among `most` rows, or is one range, or has `far` rows at least between all of its ranges:
/// those are skipped, however many they are.
fn near(kept: Vec<Range<u64>>, most: u64, far: u64) -> Vec<Vec<Range<u64>>> {
    let mut groups: Vec<Vec<Range<u64>>> = Vec::new();
    let mut all_are_far = true;
    for range in kept {
        let fits = groups.last().and_then(|group| group.first().zip(group.last()));
        let fits = fits.is_some_and(|(first, last)| {
            all_are_far &= range.start - last.end >= far;
            range.end - first.start <= most || all_are_far
        });
        match groups.last_mut().filter(|_| fits) {
            Some(group) => group.push(range),
            None => {
                groups.push(vec![range]);
                all_are_far = true;
            }
        }
    }
    groups
}

/// Whether there are `far` rows at least between all ranges.
fn is_sparse(ranges: &[Range<u64>], far: u64) -> bool {
    let mut pairs = ranges.iter().zip(ranges.iter().skip(1));
    pairs.all(|(range, next)| next.start - range.end >= far)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(range: Range<u64>) -> Vec<Range<u64>> {
        std::iter::once(range).collect()
    }

    #[test]
    fn test_rows_of_a_chunk_lie_near_one_another() {
        let near = |kept, most| super::near(kept, most, u64::MAX);
        assert_eq!(
            near(vec![0..1, 5..6, 9..12, 40..90], 12),
            vec![vec![0..1, 5..6, 9..12], one(40..90)]
        );
        assert_eq!(near(vec![0..1, 12..13], 12).len(), 2);
        assert_eq!(near(vec![0..100, 100..101], 12), vec![one(0..100), one(100..101)]);
        assert!(near(Vec::new(), 12).is_empty());
    }

    #[test]
    fn test_rows_far_from_one_another_are_one_chunk() {
        assert_eq!(
            near(vec![0..1, 100..101, 1000..1001], 12, 50),
            vec![vec![0..1, 100..101, 1000..1001]]
        );
        // Some that are near are read with what lies between, which may not be much.
        assert_eq!(
            near(vec![0..1, 5..6, 100..101, 1000..1001, 1001..1002], 12, 50),
            vec![vec![0..1, 5..6], vec![100..101, 1000..1001], one(1001..1002)]
        );
        assert!(is_sparse(&[0..1, 100..101], 50));
        assert!(!is_sparse(&[0..1, 100..101, 120..121], 50));
    }
}
