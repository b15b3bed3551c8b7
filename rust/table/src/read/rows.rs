//! Sets of rows of one fragment as sorted ranges of physical offsets.

use std::ops::{Bound, Range};
use std::sync::Arc;

use arrow_array::{Array, BooleanArray};
use arrow_buffer::bit_iterator::BitSliceIterator;
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use crate::deletion::DeletionVector;

/// The rows among which those that live are looked up at a time: a container of a roaring bitmap has as many.
const WINDOW_ROWS: u64 = 1 << 16;

/// Fewer rows between two ranges of a group are read with them, or nearly: pages have units of that size.
const NEAR_ROWS: u64 = 4096;

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
    for deleted in deletions.rows().range(bounds(&range)) {
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

/// The same, found as they are asked for: every other row of millions would be as many ranges.
pub(crate) fn live_lazily(
    range: Range<u64>,
    deletions: Option<Arc<DeletionVector>>,
) -> impl Iterator<Item = Range<u64>> + Send + 'static {
    let last = deletions.as_ref().and_then(|deletions| deletions.rows().max());
    let (mut at, end) = (range.start, range.end);
    let mut ready = Vec::new().into_iter();
    let mut held: Option<Range<u64>> = None;
    std::iter::from_fn(move || loop {
        if let Some(next) = ready.next() {
            match held.replace(next) {
                // Cut at the end of a window only.
                Some(before) => match held.as_mut().filter(|next| next.start == before.end) {
                    Some(next) => next.start = before.start,
                    None => return Some(before),
                },
                None => continue,
            }
        } else if at < end {
            let stop = match last {
                Some(last) if at <= u64::from(last) => (at / WINDOW_ROWS + 1).saturating_mul(WINDOW_ROWS).min(end),
                _ => end,
            };
            ready = live(at..stop, deletions.as_deref()).into_iter();
            at = stop;
        } else {
            return held.take();
        }
    })
}

/// How many rows of `range` are not deleted.
pub(crate) fn num_live(range: &Range<u64>, deletions: Option<&DeletionVector>) -> u64 {
    let rows = range.end.saturating_sub(range.start);
    let Some(deletions) = deletions.filter(|_| rows > 0) else {
        return rows;
    };
    rows.saturating_sub(deletions.rows().range_cardinality(bounds(range)))
}

/// A range that is not empty as deletions have it: they name rows up to the largest of 32 bits.
pub(super) fn bounds(range: &Range<u64>) -> (Bound<u32>, Bound<u32>) {
    match u32::try_from(range.start) {
        Ok(start) => (
            Bound::Included(start),
            Bound::Included(u32::try_from(range.end.saturating_sub(1)).unwrap_or(u32::MAX)),
        ),
        Err(_) => (Bound::Excluded(u32::MAX), Bound::Unbounded),
    }
}

/// `range` from its live row number `skip` on: found by counts, not one row after the other.
pub(crate) fn behind_live(range: Range<u64>, deletions: Option<&DeletionVector>, skip: u64) -> Range<u64> {
    let (mut low, mut high) = (range.start, range.end.max(range.start));
    if deletions.is_none() {
        return range.start.saturating_add(skip).min(high)..high;
    }
    // The first row before which so many live.
    while low < high {
        let middle = low + (high - low) / 2;
        match num_live(&(range.start..middle), deletions) < skip {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low..range.end.max(low)
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
pub(crate) fn groups_by<R: IntoIterator<Item = Range<u64>>>(
    ranges: R,
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
    /// It lies among so many times the rows that it may have at most: those between its ranges are read with them, but for long gaps.
    pub(crate) spread: u64,
}

impl Default for Most {
    fn default() -> Self {
        Most {
            end: u64::MAX,
            rows: u64::MAX,
            spread: u64::MAX,
        }
    }
}

/// The same, where a group that starts at a row also keeps the bounds of `most`.
pub(crate) fn groups_within<R: IntoIterator<Item = Range<u64>>>(
    ranges: R,
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
        let mut between = room.saturating_mul(most.spread).saturating_sub(room);
        let gap_before = |range: &Range<u64>, group: &[Range<u64>]| {
            let gap = group.last().map_or(0, |last| range.start.saturating_sub(last.end));
            if gap < NEAR_ROWS {
                gap
            } else {
                0
            }
        };
        while let Some(range) = current.take_if(|range| {
            let gap = gap_before(range, &group);
            group.is_empty() || (range.start < most.end && gap <= between)
        }) {
            between -= gap_before(&range, &group);
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

/// The same of ranges of which some rows are deleted, which stay in the groups: they are as good as none where it is known how many live. Each
/// group comes with that number; there is none of which all rows are deleted.
pub(crate) fn spans_within<R: IntoIterator<Item = Range<u64>>>(
    ranges: R,
    deletions: Arc<DeletionVector>,
    unit: u64,
    mut size: impl FnMut() -> u64,
    most: impl Fn(u64) -> Most,
) -> impl Iterator<Item = (Vec<Range<u64>>, u64)> {
    let mut ranges = ranges.into_iter();
    let mut current = ranges.next();
    std::iter::from_fn(move || loop {
        let range = current.as_mut()?;
        *range = from_first_live(range.clone(), &deletions);
        if range.is_empty() {
            current = ranges.next();
            continue;
        }
        let most = most(range.start);
        let room = size().min(most.rows).max(1);
        let unit = if room < unit { 1 } else { unit.max(1) };
        let (mut live, mut among) = (0, room.saturating_mul(most.spread));
        let mut group: Vec<Range<u64>> = Vec::new();
        while let Some(range) = current.take_if(|range| group.is_empty() || range.start < most.end) {
            let end = range.end.min(most.end.max(range.start + 1));
            let end = end_of_live(range.start..end, &deletions, unit, room - live, among);
            live += num_live(&(range.start..end), Some(&deletions));
            among = among.saturating_sub(end - range.start);
            group.push(range.start..end);
            let is_cut = end < range.end;
            current = if is_cut { Some(end..range.end) } else { ranges.next() };
            if is_cut || live >= room || among == 0 {
                break;
            }
        }
        if live > 0 {
            return Some((group, live));
        }
    })
}

/// `range` from its first row on that lives.
fn from_first_live(range: Range<u64>, deletions: &DeletionVector) -> Range<u64> {
    let is_deleted = u32::try_from(range.start).is_ok_and(|row| deletions.contains(row));
    match is_deleted && !range.is_empty() {
        true if num_live(&range, Some(deletions)) == 0 => range.end..range.end,
        true => behind_live(range.clone(), Some(deletions), 1).start - 1..range.end,
        false => range,
    }
}

/// Where a group ends that starts with `range`, which is of `among` rows at most, about `room` of which live: at a multiple of `unit`, or where
/// the range does.
fn end_of_live(range: Range<u64>, deletions: &DeletionVector, unit: u64, room: u64, among: u64) -> u64 {
    let after = |rows: u64| {
        let end = range.start.saturating_add(rows);
        end.checked_next_multiple_of(unit).unwrap_or(end).min(range.end)
    };
    let num_live = |end: u64| num_live(&(range.start..end), Some(deletions));
    let (mut fits, mut beyond) = (after(room.min(among)), after(among));
    if num_live(beyond) <= room {
        return beyond;
    }
    while beyond - fits > unit {
        let middle = fits + ((beyond - fits) / unit / 2).max(1) * unit;
        match num_live(middle) <= room {
            true => fits = middle,
            false => beyond = middle,
        }
    }
    fits
}

/// Drops the first `skip` rows and all after the next `keep`; counts both down.
pub(crate) fn clip(ranges: Vec<Range<u64>>, skip: &mut u64, keep: &mut u64) -> Vec<Range<u64>> {
    let clipped = ranges.into_iter().map(|range| clip_range(range, skip, keep));
    clipped.filter(|range| !range.is_empty()).collect()
}

/// The first `keep` rows, as ranges are asked for.
pub(crate) fn first(mut ranges: impl Iterator<Item = Range<u64>>, mut keep: u64) -> impl Iterator<Item = Range<u64>> {
    std::iter::from_fn(move || match keep {
        0 => None,
        _ => Some(clip_range(ranges.next()?, &mut 0, &mut keep)),
    })
}

/// What is left of a range; counts both down.
fn clip_range(range: Range<u64>, skip: &mut u64, keep: &mut u64) -> Range<u64> {
    let size = range.end - range.start;
    let skipped = size.min(*skip);
    *skip -= skipped;
    let taken = (size - skipped).min(*keep);
    *keep -= taken;
    let start = range.start + skipped;
    start..start + taken
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
    fn test_live_rows_come_as_they_are_asked_for() {
        let every_other = DeletionVector::new((0..200_000).step_by(2).collect());
        let few = DeletionVector::new([5, 65_535, 65_536, 131_072, 300_000].into_iter().collect());
        let last = DeletionVector::new([u32::MAX].into_iter().collect());
        let few_deleted = few.clone();
        for deletions in [Some(every_other), Some(few), Some(last), None] {
            for range in [0..400_000, 7..65_536, 65_536..65_537, 131_071..131_074, 9..9] {
                let expected = live(range.clone(), deletions.as_ref());
                assert_eq!(num_live(&range, deletions.as_ref()), count(&expected), "{range:?}");
                let lazily: Vec<_> = live_lazily(range.clone(), deletions.clone().map(Arc::new)).collect();
                assert_eq!(lazily, expected, "{range:?}");
            }
        }
        // What a corrupt table claims costs nothing.
        let far = DeletionVector::new([3].into_iter().collect());
        let endless = live_lazily(0..u64::MAX, Some(Arc::new(far.clone())));
        assert_eq!(endless.collect::<Vec<_>>(), vec![0..3, 4..u64::MAX]);
        assert_eq!(num_live(&(0..u64::MAX), Some(&far)), u64::MAX - 1);
        for deletions in [None, Some(&few_deleted)] {
            let all = live(7..400_000, deletions);
            for skip in [0, 1, 65_527, 65_528, 65_529, 300_000, count(&all)] {
                let behind = live(behind_live(7..400_000, deletions, skip), deletions);
                assert_eq!(behind, clip(all.clone(), &mut { skip }, &mut { u64::MAX }), "{skip}");
            }
        }
        let reversed = Range { start: 20, end: 10 };
        assert!(behind_live(reversed.clone(), Some(&far), 0).is_empty());
        assert_eq!(num_live(&reversed, Some(&far)), 0);
        assert_eq!(live_lazily(reversed, Some(Arc::new(far))).next(), None);
        let firsts = first([0..2, 5..8, 9..20].into_iter(), 4);
        assert_eq!(firsts.collect::<Vec<_>>(), vec![0..2, 5..7]);
    }

    #[test]
    fn test_a_group_lies_among_some_times_its_rows() {
        let twice = |_| Most {
            spread: 2,
            ..Most::default()
        };
        let every_fourth = (0..40).step_by(4).map(|row| row..row + 1);
        let groups: Vec<_> = groups_within(every_fourth, 1, || 5, twice).collect();
        // Two rows, and the three between them, of the ten.
        assert_eq!(groups.first(), Some(&vec![0..1, 4..5]));
        assert_eq!(groups.len(), 5);
        // Those behind a long gap are another matter.
        let apart: Vec<_> = groups_within([0..2, 9_000..9_002, 20_000..20_009], 1, || 5, twice).collect();
        assert_eq!(
            apart,
            vec![
                vec![0..2, 9_000..9_002, 20_000..20_001],
                vec![20_001..20_006],
                vec![20_006..20_009]
            ]
        );
    }

    #[test]
    fn test_groups_of_deleted_rows_have_every_live_row_once() {
        let deleted = |rows: &mut dyn Iterator<Item = u32>| DeletionVector::new(rows.collect());
        let vectors = [
            deleted(&mut (0..100_000).step_by(2)),
            deleted(&mut (0..100_000).filter(|row| row % 100 != 0)),
            deleted(&mut (20_000..70_000)),
            deleted(&mut std::iter::once(7)),
            deleted(&mut (0..100_000)),
        ];
        for deletions in vectors {
            let (all, shared) = (live(0..100_000, Some(&deletions)), Arc::new(deletions));
            let kept = [0..10_000, 10_000..10_001, 12_000..90_000, 95_000..100_000];
            for (ranges, unit, room, end) in [
                (vec![0..100_000], 4096, 8192, u64::MAX),
                (kept.to_vec(), 1024, 5000, u64::MAX),
                (kept.to_vec(), 4096, 100, 50_000),
                (vec![0..100_000], 1, 1, u64::MAX),
            ] {
                let most = |start| Most {
                    end: if start < end { end } else { u64::MAX },
                    spread: 2,
                    ..Most::default()
                };
                let groups = spans_within(ranges.clone(), shared.clone(), unit, || room, most);
                let mut found = Vec::new();
                for (group, num_rows) in groups.take(if room == 1 { 500 } else { usize::MAX }) {
                    let rows: Vec<_> = group
                        .iter()
                        .flat_map(|span| live(span.clone(), Some(&shared)))
                        .collect();
                    assert_eq!(count(&rows), num_rows);
                    assert!(num_rows > 0 && num_rows < room + unit, "{num_rows} of {room}");
                    assert!(count(&group) < 2 * room + 4 * unit, "{group:?}");
                    found.extend(rows);
                }
                let expected = intersect(&all, &ranges);
                match room {
                    1 => assert!(expected
                        .iter()
                        .flat_map(Clone::clone)
                        .zip(found.into_iter().flatten())
                        .all(|(a, b)| a == b)),
                    _ => assert_eq!(intersect(&found, std::slice::from_ref(&(0..100_000))), expected),
                }
            }
        }
        // A hole is crossed in one step, however small the groups are.
        let hole = Arc::new(DeletionVector::new((10..50_000_000).collect()));
        let around = spans_within(
            [0..u64::from(u32::MAX)],
            hole,
            1,
            || 1,
            |_| Most {
                spread: 2,
                ..Most::default()
            },
        );
        let starts: Vec<u64> = around.take(12).map(|(group, _)| group[0].start).collect();
        assert_eq!(starts, (0..10).chain([50_000_000, 50_000_001]).collect::<Vec<_>>());
        let endless = spans_within(
            [0..u64::MAX],
            Arc::new(DeletionVector::default()),
            8,
            || 16,
            |_| Most::default(),
        );
        assert_eq!(endless.take(1).next(), Some((vec![0..16], 16)));
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
