//! Clusters: which ranges of two contents overlap and must be compared with each other.
//!
//! ```text
//! left   [1111] [2222]   [3333]      [555]         the same id on both sides: nothing to compare
//! right  [1111] [xx][yy]    [zzzz]          [666]  overlapping: one cluster, however long the chain; alone: a cluster of one side
//! ```

use std::ops::Range;

use crate::metarange::RangeInfo;

/// A cluster of ranges, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cluster {
    /// The same range on both sides.
    Same(usize),
    /// Ranges that overlap across the sides, or one that overlaps none of the other side.
    Different {
        /// On the left.
        left: Range<usize>,
        /// On the right.
        right: Range<usize>,
    },
}

/// All clusters, in the order of their keys.
pub(crate) fn clusters(left: &[RangeInfo], right: &[RangeInfo]) -> Vec<Cluster> {
    let mut found = Vec::new();
    let (mut l, mut r) = (0, 0);
    loop {
        let (first_left, first_right) = (left.get(l), right.get(r));
        let Some(start) = first_left.or(first_right) else {
            return found;
        };
        if let (Some(a), Some(b)) = (first_left, first_right) {
            if a.id == b.id {
                found.push(Cluster::Same(l));
                (l, r) = (l + 1, r + 1);
                continue;
            }
        }
        let (from_left, from_right) = (l, r);
        let mut end = match (first_left, first_right) {
            (Some(a), Some(b)) if b.min_key < a.min_key => &b.max_key,
            _ => &start.max_key,
        };
        // The cluster of the range that starts first: extended until no range overlaps it.
        loop {
            match (left.get(l), right.get(r)) {
                (Some(a), _) if a.min_key <= *end => {
                    end = end.max(&a.max_key);
                    l += 1;
                }
                (_, Some(b)) if b.min_key <= *end => {
                    end = end.max(&b.max_key);
                    r += 1;
                }
                _ => break,
            }
        }
        found.push(Cluster::Different {
            left: from_left..l,
            right: from_right..r,
        });
    }
}

/// The ranges of `ranges` that overlap the keys from `min_key` to `max_key`.
pub(crate) fn overlapping(ranges: &[RangeInfo], min_key: &[u8], max_key: &[u8]) -> Range<usize> {
    let start = ranges.partition_point(|range| range.max_key.as_slice() < min_key);
    let end = ranges.partition_point(|range| range.min_key.as_slice() <= max_key);
    start..end.max(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TableId;

    fn range(id: u8, min: &str, max: &str) -> RangeInfo {
        RangeInfo {
            id: TableId::of_hash(&[id; 32]),
            min_key: min.into(),
            max_key: max.into(),
            estimated_size: 0,
            count: 0,
        }
    }

    #[test]
    fn test_ranges_that_overlap_are_together_and_equal_ones_are_skipped() {
        let left = [
            range(1, "a", "b"),
            range(2, "c", "f"),
            range(3, "h", "k"),
            range(5, "p", "q"),
        ];
        let right = [
            range(1, "a", "b"),
            range(7, "c", "d"),
            range(8, "e", "e"),
            range(9, "k", "m"),
            range(6, "r", "s"),
        ];
        let different = |left, right| Cluster::Different { left, right };
        let expected = [
            Cluster::Same(0),
            different(1..2, 1..3),
            different(2..3, 3..4),
            different(3..4, 4..4),
            different(4..4, 4..5),
        ];
        assert_eq!(clusters(&left, &right), expected);
        assert_eq!(clusters(&[], &[]), []);
        assert_eq!(clusters(&[], &left[..1]), [different(0..0, 0..1)]);
        assert_eq!(overlapping(&left, b"d", b"i"), 1..3);
        assert_eq!(overlapping(&left, b"g", b"g"), 2..2);
    }
}
