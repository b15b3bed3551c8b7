//! Chunks whose rows take more memory than was expected are read in parts, one after the other.
//!
//! How long values are is known once some were read; a page may hold values that are a thousand times as long as those before them, in as
//! few bytes.

use std::ops::Range;

use arrow_array::RecordBatch;

use super::chunk::{read_chunk, read_tested, ChunkPlan, ChunkSource, Chunked, Kept};
use super::chunking::Decoded;
use super::rows::{count, groups_by, intersect};
use crate::error::Result;

/// The most parts that rows are cut into at a time: what is told of their memory is a guess.
const MOST_PARTS: u64 = 64;

/// Some rows of a chunk, and what the filter keeps of them, where it was asked before.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) rows: Vec<Range<u64>>,
    pub(super) kept: Option<Kept>,
    /// Of about how many rows the filter is asked at once, as far as is known.
    pub(super) piece: u64,
}

impl Part {
    /// All rows of a chunk.
    pub(super) fn of(rows: Vec<Range<u64>>, kept: Option<Kept>) -> Part {
        Part {
            rows,
            kept,
            piece: u64::MAX,
        }
    }

    /// The rows that come out as far as is known.
    fn wanted(&self) -> &[Range<u64>] {
        self.kept.as_ref().map_or(&self.rows, |kept| &kept.rows)
    }

    /// How many rows come out as far as is known.
    fn num_rows(&self) -> u64 {
        count(self.wanted())
    }

    /// The same in about `times` parts, each of them of whole batches where all rows come out; one where there are no fewer rows to be had.
    fn split(self, times: u64, batch_size: Option<usize>) -> Vec<Part> {
        let size = self.num_rows().div_ceil(times.clamp(1, MOST_PARTS)).max(1);
        let size = match batch_size.filter(|_| self.kept.is_none()) {
            Some(batch) => size.next_multiple_of(batch.max(1) as u64),
            None => size,
        };
        let mut skipped = 0;
        let groups = groups_by(self.wanted().to_vec(), 1, || size);
        groups
            .map(|group| {
                let rows = match (&self.kept, group.first(), group.last()) {
                    (Some(_), Some(first), Some(last)) => {
                        intersect(&self.rows, std::slice::from_ref(&(first.start..last.end)))
                    }
                    _ => group.clone(),
                };
                let before = skipped;
                skipped += count(&group);
                Part {
                    rows,
                    kept: self.kept.as_ref().map(|kept| kept.part(group, before)),
                    piece: self.piece,
                }
            })
            .collect()
    }
}

/// What is left of a chunk, and what was read of it.
#[derive(Debug)]
pub(super) struct Left {
    /// The last one first.
    parts: Vec<Part>,
    rows: u64,
    bytes: u64,
}

impl Left {
    /// All of a chunk.
    pub(super) fn of(part: Part) -> Left {
        Left {
            parts: vec![part],
            rows: 0,
            bytes: 0,
        }
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

/// Reads the next part of a chunk, or as much of it as may be in memory.
pub(super) async fn read_part(
    plan: &ChunkPlan,
    source: &ChunkSource,
    decoded: &Decoded,
    mut left: Left,
) -> Result<(Vec<RecordBatch>, Left)> {
    while let Some(part) = left.parts.pop() {
        let may_be_split = part.num_rows() > plan.batch_size.filter(|_| part.kept.is_none()).unwrap_or(1) as u64;
        let most = if may_be_split { plan.most_bytes } else { usize::MAX };
        let read = match &part.kept {
            Some(kept) => read_tested(plan, source, &part.rows, kept.clone(), most).await,
            None => read_chunk(plan, source, &part.rows, part.piece, most).await,
        };
        let chunked = match read {
            Err(error) if may_be_split => match error.too_large() {
                Some(times) => Chunked::TooLarge(part.clone(), times, None),
                None => return Err(error),
            },
            other => other?,
        };
        match chunked {
            Chunked::Read { batches, bytes, rest } => {
                let unread = rest.as_ref().map_or(0, Part::num_rows);
                let rows = part.num_rows().saturating_sub(unread);
                left.parts.extend(rest);
                left.rows = left.rows.saturating_add(rows);
                left.bytes = left.bytes.saturating_add(bytes);
                let kept: usize = batches.iter().map(RecordBatch::num_rows).sum();
                decoded.count(rows, kept as u64);
                if left.is_empty() || !decoded.is_known() {
                    decoded.weigh(left.rows, left.bytes);
                }
                return Ok((batches, left));
            }
            Chunked::TooLarge(part, times, rest) => {
                if left.rows == 0 && left.is_empty() && rest.is_none() {
                    // Others are cut while this one is read.
                    decoded.weigh(part.num_rows(), times.saturating_mul(plan.most_bytes as u64));
                }
                left.parts.extend(rest);
                // Twice as many as would do: values are not of one length.
                let split = part.split(times.saturating_mul(2), plan.batch_size);
                left.parts.extend(split.into_iter().rev());
            }
        }
    }
    Ok((Vec::new(), left))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array};

    use super::*;

    #[test]
    fn test_parts_have_every_row_once_and_whole_batches() {
        let part = Part::of(vec![0..100, 200..350], None);
        let rows = |parts: Vec<Part>| parts.into_iter().map(|part| part.rows).collect::<Vec<_>>();
        let split = rows(part.clone().split(3, None));
        assert_eq!(split, vec![vec![0..84], vec![84..100, 200..268], vec![268..350]]);
        let whole = rows(part.clone().split(3, Some(100)));
        assert_eq!(whole, vec![vec![0..100], vec![200..300], vec![300..350]]);
        assert_eq!(part.split(u64::MAX, None).len(), 63);
    }

    #[test]
    fn test_parts_keep_what_the_filter_kept() {
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..6));
        let kept = Kept {
            rows: vec![5..7, 90..91, 210..213],
            columns: vec![Some(numbers), None],
        };
        let part = Part::of(vec![0..100, 200..300], Some(kept));
        let split = part.split(2, Some(100));
        let rows: Vec<_> = split.iter().map(|part| part.rows.clone()).collect();
        assert_eq!(rows, vec![vec![5..91], vec![210..213]]);
        let kept: Vec<&Kept> = split.iter().filter_map(|part| part.kept.as_ref()).collect();
        assert_eq!(kept[1].rows, vec![210..213]);
        let column = kept[1].columns[0].as_ref().unwrap();
        assert_eq!(
            column.as_ref(),
            &Int32Array::from_iter_values(3..6) as &dyn arrow_array::Array
        );
        assert!(kept[1].columns[1].is_none());
    }
}
