//! Sets of rows of one fragment as sorted ranges of physical offsets.

use std::ops::Range;

use arrow_array::{Array, BooleanArray};
use arrow_buffer::bit_iterator::BitSliceIterator;
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use crate::deletion::DeletionVector;

/// How many rows there are in `ranges`.
pub(crate) fn count(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|r| r.end - r.start).sum()
}

/// The rows of `range` that are not deleted.
pub(crate) fn live(range: Range<u64>, deletions: Option<&DeletionVector>) -> Vec<Range<u64>> {
    if range.is_empty() {
        return Vec::new();
    }
    let Some(deletions) = deletions else {
        return vec![range];
    };
    let mut out = Vec::new();
    let mut start = range.start;
    let bounds = u32::try_from(range.start).unwrap_or(u32::MAX)..u32::try_from(range.end).unwrap_or(u32::MAX);
    for deleted in deletions.rows().range(bounds) {
        let deleted = u64::from(deleted);
        if deleted > start {
            out.push(start..deleted);
        }
        start = deleted + 1;
    }
    if start < range.end {
        out.push(start..range.end);
    }
    out
}

/// The rows of `ranges`, numbered from 0 across them, for which `mask` is true.
pub(crate) fn select(ranges: &[Range<u64>], mask: &BooleanArray) -> Vec<Range<u64>> {
    let truths = match mask.nulls() {
        None => mask.values().clone(),
        Some(nulls) => mask.values() & nulls.inner(),
    };
    let mut out: Vec<Range<u64>> = Vec::new();
    let mut ranges = ranges.iter();
    let Some(mut current) = ranges.next().cloned() else {
        return out;
    };
    let mut position = 0_u64;
    for (start, end) in BitSliceIterator::new(truths.values(), truths.offset(), truths.len()) {
        let (mut start, end) = (start as u64, end as u64);
        while start < end {
            let size = current.end - current.start;
            if start >= position + size {
                position += size;
                match ranges.next() {
                    Some(next) => current = next.clone(),
                    None => return out,
                }
                continue;
            }
            let stop = end.min(position + size);
            let picked = current.start + (start - position)..current.start + (stop - position);
            match out.last_mut() {
                Some(last) if last.end == picked.start => last.end = picked.end,
                _ => out.push(picked),
            }
            start = stop;
        }
    }
    out
}

/// Which of the rows of `ranges`, numbered from 0 across them, are in `kept`, all of whose rows are in `ranges`.
pub(crate) fn mask_of(ranges: &[Range<u64>], kept: &[Range<u64>]) -> BooleanBuffer {
    let mut bits = BooleanBufferBuilder::new(usize::try_from(count(ranges)).unwrap_or(0));
    let mut append = |rows: u64, is_kept: bool| bits.append_n(usize::try_from(rows).unwrap_or(0), is_kept);
    let mut kept = kept.iter().cloned().peekable();
    for range in ranges {
        let mut at = range.start;
        while let Some(next) = kept.peek_mut().filter(|next| next.start < range.end) {
            append(next.start - at, false);
            let end = next.end.min(range.end);
            append(end - next.start, true);
            at = end;
            if next.end > end {
                // Ranges that follow one another may be one in `kept`.
                next.start = end;
                break;
            }
            kept.next();
        }
        append(range.end - at, false);
    }
    bits.finish()
}

/// The rows that are in both.
pub(crate) fn intersect(left: &[Range<u64>], right: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut out: Vec<Range<u64>> = Vec::new();
    let mut right = right.iter().peekable();
    for range in left {
        while right.next_if(|other| other.end <= range.start).is_some() {}
        let mut others = right.clone();
        while let Some(other) = others.next_if(|other| other.start < range.end) {
            let (start, end) = (range.start.max(other.start), range.end.min(other.end));
            match out.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => out.push(start..end),
            }
        }
    }
    out
}

/// Cuts ranges into groups of about `size` rows, lazily: a corrupt table that claims endless rows must not cost memory.
pub(crate) fn groups(ranges: Vec<Range<u64>>, size: u64) -> impl Iterator<Item = Vec<Range<u64>>> {
    groups_by(ranges, 1, move || size)
}

/// The same, with the size of each group from `size`, and groups of a `unit` or more that end at a multiple of it or where a range ends.
pub(crate) fn groups_by(
    ranges: Vec<Range<u64>>,
    unit: u64,
    size: impl FnMut() -> u64,
) -> impl Iterator<Item = Vec<Range<u64>>> {
    groups_within(ranges, unit, size, |_| Most::default())
}

/// Bounds of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Most {
    /// It ends before this row.
    pub(crate) end: u64,
    /// It has so many rows at most.
    pub(crate) rows: u64,
}

impl Default for Most {
    fn default() -> Self {
        Most {
            end: u64::MAX,
            rows: u64::MAX,
        }
    }
}

/// The same, where a group that starts at a row also keeps the bounds of `most`.
pub(crate) fn groups_within(
    ranges: Vec<Range<u64>>,
    unit: u64,
    mut size: impl FnMut() -> u64,
    most: impl Fn(u64) -> Most,
) -> impl Iterator<Item = Vec<Range<u64>>> {
    let unit = unit.max(1);
    let mut ranges = ranges.into_iter();
    let mut current = ranges.next();
    std::iter::from_fn(move || {
        let mut group: Vec<Range<u64>> = Vec::new();
        let most = most(current.as_ref()?.start);
        let mut room = size().min(most.rows).max(1);
        let unit = if room < unit { 1 } else { unit };
        while let Some(range) = current.take_if(|range| group.is_empty() || range.start < most.end) {
            let full = range.start.saturating_add(room);
            let full = full.checked_next_multiple_of(unit).unwrap_or(full);
            let end = range.end.min(full).min(most.end.max(range.start + 1));
            room = room.saturating_sub(end - range.start);
            group.push(range.start..end);
            current = if end < range.end {
                Some(end..range.end)
            } else {
                ranges.next()
            };
            if room == 0 || end == most.end {
                break;
            }
        }
        (!group.is_empty()).then_some(group)
    })
}

/// Drops the first `skip` rows and all after the next `keep`; counts both down.
pub(crate) fn clip(ranges: Vec<Range<u64>>, skip: &mut u64, keep: &mut u64) -> Vec<Range<u64>> {
    let mut out = Vec::new();
    for range in ranges {
        let size = range.end - range.start;
        let skipped = size.min(*skip);
        *skip -= skipped;
        let taken = (size - skipped).min(*keep);
        *keep -= taken;
        if taken > 0 {
            let start = range.start + skipped;
            out.push(start..start + taken);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_a_mask_picks_rows_across_ranges() {
        let mask = BooleanArray::from(vec![Some(true), Some(false), None, Some(true), Some(true)]);
        assert_eq!(select(&[0..2, 10..13], &mask), vec![0..1, 11..13]);
        assert_eq!(select(&[0..5], &mask), vec![0..1, 3..5]);
        assert!(select(&[], &BooleanArray::from(Vec::<bool>::new())).is_empty());
    }

    #[test]
    fn test_a_mask_comes_back_from_the_rows_that_it_picked() {
        for (ranges, bits) in [
            (vec![0..5], vec![true, false, false, true, true]),
            (vec![0..2, 10..13], vec![true, false, true, true, false]),
            (vec![0..2, 2..4], vec![false, true, true, false]),
            (vec![3..4, 9..10], vec![false, false]),
            (vec![], vec![]),
        ] {
            let mask = BooleanArray::from(bits);
            let kept = select(&ranges, &mask);
            assert_eq!(&mask_of(&ranges, &kept), mask.values(), "{ranges:?}");
        }
    }

    #[test]
    fn test_no_rows_are_live_behind_the_end() {
        let deletions = DeletionVector::new([3].into_iter().collect());
        let reversed = Range { start: 20, end: 10 };
        assert!(live(reversed.clone(), Some(&deletions)).is_empty());
        assert!(live(reversed, None).is_empty());
        assert_eq!(live(2..5, Some(&deletions)), vec![2..3, 4..5]);
    }

    #[test]
    fn test_rows_in_both_are_kept() {
        assert_eq!(
            intersect(&[0..5, 8..20], &[2..3, 4..9, 9..10, 19..30]),
            vec![2..3, 4..5, 8..10, 19..20]
        );
        assert_eq!(intersect(&[0..10], &[0..4, 4..10]), vec![0..10]);
        assert!(intersect(&[0..5], &[5..9]).is_empty());
    }

    #[test]
    fn test_groups_and_clips_keep_every_row_once() {
        let cut: Vec<_> = groups(vec![0..5, 8..10], 3).collect();
        assert_eq!(cut, vec![vec![0..3], vec![3..5, 8..9], vec![9..10]]);
        assert_eq!(groups(vec![0..u64::MAX], 3).next(), Some(vec![0..3]));
        let whole: Vec<_> = groups_by(vec![1..5, 9..30], 8, || 8).collect();
        assert_eq!(whole, vec![vec![1..5, 9..16], vec![16..24], vec![24..30]]);
        let parts: Vec<_> = groups_by(vec![1..5, 9..14], 8, || 3).collect();
        assert_eq!(parts, vec![vec![1..4], vec![4..5, 9..11], vec![11..14]]);
        let ends = |start| Most {
            end: if start < 12 { 12 } else { 40 },
            ..Most::default()
        };
        let within: Vec<_> = groups_within(vec![1..5, 9..30, 41..42], 8, || 16, ends).collect();
        assert_eq!(within, vec![vec![1..5, 9..12], vec![12..30], vec![41..42]]);
        let few = |_| Most {
            rows: 4,
            ..Most::default()
        };
        let fours: Vec<_> = groups_within(vec![1..5, 9..14], 1, || 16, few).collect();
        assert_eq!(fours, vec![vec![1..5], vec![9..13], vec![13..14]]);
        assert_eq!(
            groups_by(vec![0..u64::MAX], 8, || u64::MAX).next(),
            Some(vec![0..u64::MAX])
        );
        let (mut skip, mut keep) = (3, 3);
        assert_eq!(clip(vec![0..2, 5..8, 9..20], &mut skip, &mut keep), vec![6..8, 9..10]);
        assert_eq!((skip, keep), (0, 0));
    }
}
