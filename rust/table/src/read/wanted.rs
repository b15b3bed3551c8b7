//! The rows of a fragment that a scan wants, and how they are cut into groups.

use std::ops::Range;
use std::sync::Arc;

use super::rows::{behind_live, count, first, groups_within, live_lazily, num_live, spans_within, Most};
use crate::deletion::DeletionVector;

/// The rows of a chunk lie among so many times as many at most, deleted ones included: those are read, and in memory for a while.
const SPREAD: u64 = 2;

/// Groups of rows, and how many of each live.
pub(super) type Groups = Box<dyn Iterator<Item = (Vec<Range<u64>>, u64)> + Send>;

/// Ranges of a fragment's rows, and which of them are left out.
#[derive(Debug)]
pub(super) struct Wanted {
    ranges: Vec<Range<u64>>,
    hidden: Option<Arc<DeletionVector>>,
    /// The rows that live in the ranges, and the first ones of them that are wanted.
    live: u64,
    num_rows: u64,
    /// All rows of the ranges.
    among: u64,
}

impl Wanted {
    /// The rows of `ranges` without `hidden` ones, without the first `skip` and what is behind the next `keep`, which are counted down. Rows
    /// are skipped in one range only: those that a filter rules out say nothing of an offset.
    pub(super) fn new(
        ranges: Vec<Range<u64>>,
        hidden: Option<Arc<DeletionVector>>,
        skip: &mut u64,
        keep: &mut u64,
    ) -> Wanted {
        let live: u64 = ranges.iter().map(|range| num_live(range, hidden.as_deref())).sum();
        let skipped = live.min(*skip);
        let ranges = match ranges.as_slice() {
            [all] if skipped > 0 => vec![behind_live(all.clone(), hidden.as_deref(), skipped)],
            _ => ranges,
        };
        let live = live - skipped;
        let num_rows = live.min(*keep);
        *skip -= skipped;
        *keep -= num_rows;
        Wanted {
            among: count(&ranges),
            ranges,
            hidden,
            live,
            num_rows,
        }
    }

    /// How many there are.
    pub(super) fn num_rows(&self) -> u64 {
        self.num_rows
    }

    /// How many there are with those that are left out.
    pub(super) fn among(&self) -> u64 {
        self.among
    }

    /// About how many chunks of so many rows they are.
    pub(super) fn num_chunks(&self, rows: u64) -> u64 {
        (self.num_rows / rows.max(1)).max(self.among / rows.saturating_mul(SPREAD).max(1))
    }

    /// What a chunk of `live` rows has in memory for a while, as far as is known.
    pub(super) fn times_read(&self) -> u64 {
        if self.hidden.is_some() {
            SPREAD
        } else {
            1
        }
    }

    /// Of so many rows as many as lie among [`SPREAD`] times as many where those that live lie evenly, in whole batches.
    pub(super) fn whole_batches(&self, batch: usize) -> impl Fn(u64) -> u64 + Send + 'static {
        let (live, among, batch) = (
            u128::from(self.live),
            u128::from(self.among.max(1)),
            batch.max(1) as u64,
        );
        move |rows| {
            let lie = u128::from(rows) * live * u128::from(SPREAD) / among;
            let lie = u64::try_from(lie).unwrap_or(u64::MAX).clamp(1, rows.max(1));
            lie.div_ceil(batch).saturating_mul(batch)
        }
    }

    /// The bound of how far apart the rows of a group lie; none where batches have a size, or behind a network, where the requests count.
    pub(super) fn spread(is_bounded: bool) -> u64 {
        if is_bounded {
            SPREAD
        } else {
            u64::MAX
        }
    }

    /// The rows that live.
    pub(super) fn rows(self) -> impl Iterator<Item = Range<u64>> + Send + 'static {
        let hidden = self.hidden;
        let rows = self.ranges.into_iter();
        let rows = rows.flat_map(move |range| live_lazily(range, hidden.clone()));
        first(rows, self.num_rows)
    }

    /// Groups of them as [`groups_within`] makes them, and what is to be left out of each, if anything is: where groups are counted `in_spans`
    /// and all rows are wanted their own tasks find that.
    pub(super) fn groups(
        self,
        unit: u64,
        size: impl FnMut() -> u64 + Send + 'static,
        most: impl Fn(u64) -> Most + Send + 'static,
        in_spans: bool,
    ) -> (Groups, Option<Arc<DeletionVector>>) {
        let is_all = self.num_rows == self.live;
        match self.hidden.clone().filter(|_| in_spans && is_all) {
            Some(deleted) => {
                let groups = spans_within(self.ranges, deleted.clone(), unit, size, most);
                (Box::new(groups), Some(deleted))
            }
            None => {
                let groups = groups_within(self.rows(), unit, size, most);
                let groups = groups.map(|rows| {
                    let live = count(&rows);
                    (rows, live)
                });
                (Box::new(groups), None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(ranges: &[Range<u64>], deleted: &[u32], mut skip: u64, mut keep: u64) -> (Wanted, u64, u64) {
        let hidden = (!deleted.is_empty()).then(|| Arc::new(DeletionVector::new(deleted.iter().copied().collect())));
        let wanted = Wanted::new(ranges.to_vec(), hidden, &mut skip, &mut keep);
        (wanted, skip, keep)
    }

    #[test]
    fn test_offsets_and_limits_are_counted_in_rows_that_live() {
        let (all, skip, keep) = wanted(std::slice::from_ref(&(0..10)), &[0, 3, 4], 2, 4);
        assert_eq!((skip, keep, all.num_rows(), all.among()), (0, 0, 4, 7));
        assert_eq!(all.rows().collect::<Vec<_>>(), vec![5..9]);
        let (none, skip, keep) = wanted(std::slice::from_ref(&(0..10)), &[0, 3, 4], 9, 4);
        assert_eq!((skip, keep, none.num_rows()), (2, 4, 0));
        let (two, _, keep) = wanted(&[0..2, 5..9], &[5], 0, 100);
        assert_eq!((two.num_rows(), keep), (5, 95));
        assert_eq!(two.rows().collect::<Vec<_>>(), vec![0..2, 6..9]);
    }

    #[test]
    fn test_groups_of_all_rows_leave_it_to_their_tasks_what_is_deleted() {
        let deleted: Vec<u32> = (0..100).step_by(2).collect();
        let ranges = std::slice::from_ref(&(0..100));
        let most = |_| Most::default();
        let (all, ..) = wanted(ranges, &deleted, 0, u64::MAX);
        let (groups, left) = all.groups(1, || 20, most, true);
        assert!(left.is_some());
        assert_eq!(groups.map(|(_, live)| live).sum::<u64>(), 50);
        for (keep, in_spans) in [(40, true), (u64::MAX, false)] {
            let (some, ..) = wanted(ranges, &deleted, 0, keep);
            let (groups, left) = some.groups(1, || 20, most, in_spans);
            assert!(left.is_none());
            let live: Vec<u64> = groups.map(|(rows, live)| live.min(count(&rows))).collect();
            assert_eq!(live.iter().sum::<u64>(), keep.min(50));
        }
    }

    #[test]
    fn test_batches_stay_whole_where_few_rows_live() {
        let deleted: Vec<u32> = (0..1000).filter(|row| row % 100 != 0).collect();
        let (few, ..) = wanted(std::slice::from_ref(&(0..1000)), &deleted, 0, u64::MAX);
        assert_eq!(
            (few.whole_batches(7)(7000), few.num_chunks(100), few.times_read()),
            (140, 5, 2)
        );
        let (all, ..) = wanted(std::slice::from_ref(&(0..1000)), &[], 0, 10);
        assert_eq!(
            (all.whole_batches(7)(7000), all.num_chunks(100), all.times_read()),
            (7000, 5, 1)
        );
        assert_eq!(all.whole_batches(usize::MAX)(1), usize::MAX as u64);
    }
}
