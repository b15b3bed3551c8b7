//! Coalescing: which ranges of an object are read together.
//!
//! Ranges are sorted and joined while the gap between them is small and the joined read stays short, since a slice of a read keeps all of
//! the read's bytes in memory.

use std::ops::Range;

use bytes::Bytes;

use crate::error::{Result, StoreError};

/// The reads to make, and where each requested range lies in them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Coalesced {
    /// The reads, sorted by start.
    pub runs: Vec<Range<u64>>,
    /// The place of each requested range, in the order of the request.
    pub pieces: Vec<Piece>,
}

/// One requested range within a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    run: usize,
    start: usize,
    len: usize,
}

impl Piece {
    /// The range's bytes, as a slice of the read's. `buffers` are the bytes of the reads, each of its full length.
    pub(crate) fn cut(&self, buffers: &[Bytes]) -> Bytes {
        match buffers.get(self.run) {
            Some(buffer) if self.len > 0 => buffer.slice(self.start..self.start + self.len),
            _ => Bytes::new(),
        }
    }
}

/// Joins ranges that lie at most `gap` bytes apart, unless the joined read would be longer than `limit`. Empty ranges cost no read.
pub(crate) fn coalesce(path: &str, ranges: &[Range<u64>], gap: u64, limit: u64) -> Result<Coalesced> {
    let mut order: Vec<usize> = Vec::with_capacity(ranges.len());
    let mut sorted = true;
    let mut last_start = 0;
    for (index, range) in ranges.iter().enumerate() {
        if range.start > range.end || usize::try_from(range.end - range.start).is_err() {
            let message = format!(
                "expected a range that ends after it starts, found {}..{}",
                range.start, range.end
            );
            return Err(StoreError::invalid_argument(path, message));
        }
        sorted &= range.start >= last_start;
        last_start = range.start;
        order.push(index);
    }
    if !sorted {
        order.sort_by_key(|index| ranges.get(*index).map_or(0, |range| range.start));
    }
    let mut runs: Vec<Range<u64>> = Vec::new();
    let mut pieces = vec![
        Piece {
            run: 0,
            start: 0,
            len: 0
        };
        ranges.len()
    ];
    for index in order {
        let (Some(range), Some(piece)) = (ranges.get(index), pieces.get_mut(index)) else {
            continue;
        };
        if range.is_empty() {
            continue;
        }
        match runs.last_mut() {
            Some(run) if joins(run, range, gap, limit) => run.end = run.end.max(range.end),
            _ => runs.push(range.clone()),
        }
        let run_start = runs.last().map_or(0, |run| run.start);
        *piece = Piece {
            run: runs.len() - 1,
            start: to_usize(path, range.start - run_start)?,
            len: to_usize(path, range.end - range.start)?,
        };
    }
    Ok(Coalesced { runs, pieces })
}

fn joins(run: &Range<u64>, range: &Range<u64>, gap: u64, limit: u64) -> bool {
    // Overlapping ranges are always joined, so that no byte is read twice, however long the read gets.
    range.start < run.end || (range.start - run.end <= gap && range.end - run.start <= limit)
}

fn to_usize(path: &str, value: u64) -> Result<usize> {
    usize::try_from(value)
        .map_err(|_| StoreError::invalid_argument(path, format!("a range of {value} bytes does not fit into memory")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_near_ranges_are_one_read_and_far_ones_are_not() {
        let found = coalesce("x", &[100..110, 0..10, 14..20], 4, 1000).unwrap();
        assert_eq!(found.runs, vec![0..20, 100..110]);
    }

    #[test]
    fn test_a_read_does_not_grow_past_the_limit() {
        let found = coalesce("x", &[0..10, 10..20, 20..30], 4, 20).unwrap();
        assert_eq!(found.runs, vec![0..20, 20..30]);
    }

    #[test]
    fn test_a_range_that_ends_before_it_starts_is_refused() {
        let error = coalesce("x", &[Range { start: 5, end: 3 }], 0, 0).unwrap_err();
        assert_eq!(error.kind(), "invalid_argument");
        assert!(error.to_string().contains("5..3"), "{error}");
    }

    proptest! {
        #[test]
        fn test_every_range_is_cut_from_the_reads_as_from_the_object(
            ranges in prop::collection::vec((0_u64..500, 0_u64..60), 0..40),
            gap in 0_u64..40,
            limit in 0_u64..200,
        ) {
            let object: Vec<u8> = (0..600_u64).map(|at| (at * 7 % 251) as u8).collect();
            let ranges: Vec<Range<u64>> = ranges.into_iter().map(|(start, len)| start..start + len).collect();
            let found = coalesce("x", &ranges, gap, limit).unwrap();
            let cut = |range: &Range<u64>| object[range.start as usize..range.end as usize].to_vec();
            let buffers: Vec<Bytes> = found.runs.iter().map(|run| Bytes::from(cut(run))).collect();
            for (range, piece) in ranges.iter().zip(&found.pieces) {
                prop_assert_eq!(piece.cut(&buffers).to_vec(), cut(range));
            }
            for pair in found.runs.windows(2) {
                prop_assert!(pair[0].end <= pair[1].start, "runs are sorted and apart");
            }
        }
    }
}
