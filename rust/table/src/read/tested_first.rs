//! Filters that are asked before there are chunks: where a row's other columns are large beside those of the filter, such as blobs and
//! vectors beside a key, a chunk of a few rows would hardly be worth its task, and one of many may have any size if all of them are kept.

use std::ops::Range;
use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use super::chunk::{kept_rows, ChunkPlan, ChunkSource};
use super::chunking::{threads, ChunkSize};
use super::rows::{count, groups_by, intersect};
use super::scan::{joined, Chunk};
use crate::error::Result;

/// The chunks of what the filter keeps of `rows` of a fragment, which is asked of [`ChunkSize::tested_rows`] at a time. `next_size` says
/// how many rows each chunk has, `bytes_of` how many bytes so many rows take.
pub(super) fn tested_first(
    plan: Arc<ChunkPlan>,
    source: Arc<ChunkSource>,
    rows: Vec<Range<u64>>,
    size: ChunkSize,
    next_size: impl FnMut() -> u64 + Clone + Send + 'static,
    bytes_of: impl Fn(u64) -> u64 + Clone + Send + 'static,
) -> BoxStream<'static, Result<Chunk>> {
    let pieces = groups_by(rows, size.unit, move || size.tested_rows);
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
        let chunks = groups_by(kept, size.unit, next_size.clone()).map(move |kept| {
            let rows = match (kept.first(), kept.last()) {
                (Some(first), Some(last)) => intersect(&rows, std::slice::from_ref(&(first.start..last.end))),
                _ => Vec::new(),
            };
            Ok(Chunk {
                source: source.clone(),
                bytes: bytes_of(count(&kept)),
                rows,
                kept: Some(kept),
            })
        });
        stream::iter(chunks)
    });
    chunks.try_flatten().boxed()
}
