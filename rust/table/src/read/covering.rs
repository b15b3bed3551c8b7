//! Many short runs of rows are read with the rows between them, which are left out then: each run costs a look-up in each column, which takes
//! as long as to decode hundreds of values. Where every other row is deleted a scan takes a fifth of the time. What is read so takes a few times
//! the memory of what is wanted at most.

use std::ops::Range;

use arrow_array::{BooleanArray, RecordBatch};

use super::rows::{count, mask_of};
use crate::error::{Result, TableError};

/// The cost of one more run of rows in a column, in bytes that could be read and filtered in the same time (measured: about 200 ns).
pub(super) const RUN_COST: u64 = 1600;

/// The same of runs that are near one another, whose bytes are in the processor's cache already.
const NEAR_RUN_COST: u64 = 500;

/// To decode takes as long as to read so many times fewer bytes.
pub(super) const DECODED: u64 = 4;

/// The rows that are read are so many times those that are wanted at most: in scans of local files, and in scans of others and compactions.
pub(crate) const NEAR_SPREAD: u64 = 4;
pub(crate) const FAR_SPREAD: u64 = 2;

/// What it costs to read rows of some columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowCost {
    /// One more run of rows, in bytes that could be read and filtered in the same time.
    run: u64,
    /// One row among many, in such bytes.
    row: u64,
    /// To leave out others than this one, in such bytes.
    kept: u64,
}

impl RowCost {
    /// Of so many columns that take so many bytes a row, in files and in memory as far as is known.
    pub(crate) fn new(columns: u64, in_files: u64, in_memory: u64) -> RowCost {
        RowCost {
            run: columns.saturating_mul(NEAR_RUN_COST),
            row: in_files.max(in_memory / DECODED).max(1),
            kept: in_memory / DECODED,
        }
    }

    /// The runs to read instead of `rows`, if that costs less: of `spread` times as many rows at most.
    pub(crate) fn covering(self, rows: &[Range<u64>], spread: u64) -> Option<Vec<Range<u64>>> {
        if rows.len() < 2 || self.run == 0 || spread < 2 {
            return None;
        }
        let mut joined: Vec<Range<u64>> = Vec::new();
        let mut before = 0;
        for range in rows {
            let length = range.end.saturating_sub(range.start);
            // Each run is beside two gaps.
            let most = (spread - 1).saturating_mul(before + length) / 2;
            before = length;
            match joined.last_mut() {
                Some(last) => {
                    let gap = range.start.saturating_sub(last.end);
                    match gap <= most && gap.saturating_mul(self.row) < self.run {
                        true => last.end = range.end,
                        false => joined.push(range.clone()),
                    }
                }
                None => joined.push(range.clone()),
            }
        }
        let saved = ((rows.len() - joined.len()) as u64).saturating_mul(self.run);
        let kept = count(rows);
        let between = count(&joined).saturating_sub(kept);
        let costs = between
            .saturating_mul(self.row)
            .saturating_add(kept.saturating_mul(self.kept));
        (costs < saved).then_some(joined)
    }
}

/// Of a batch of the rows that were read instead of `rows` those that were wanted.
pub(crate) fn uncovered(batch: &RecordBatch, read: &[Range<u64>], rows: &[Range<u64>]) -> Result<RecordBatch> {
    let mask = BooleanArray::new(mask_of(read, rows), None);
    arrow_select::filter::filter_record_batch(batch, &mask).map_err(|e| TableError::invalid(e.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};

    use super::*;

    #[test]
    fn test_short_runs_are_read_with_what_is_between_them() {
        let numbers = RowCost::new(1, 2, 8);
        let every_other: Vec<_> = (0..1000).step_by(2).map(|row| row..row + 1).collect();
        let read = numbers.covering(&every_other, NEAR_SPREAD).unwrap();
        assert_eq!(read, vec![0..999]);
        let batch = |rows: &[Range<u64>]| {
            let rows = rows.iter().cloned().flatten().map(|row| row as i64);
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
            RecordBatch::try_from_iter([("c", column)]).unwrap()
        };
        assert_eq!(
            uncovered(&batch(&read), &read, &every_other).unwrap(),
            batch(&every_other)
        );
        // Long gaps stay.
        let apart: Vec<_> = [0, 2, 4, 5000, 5002, 5004].map(|row| row..row + 1).into();
        let read = numbers.covering(&apart, NEAR_SPREAD).unwrap();
        assert_eq!(read, vec![0..5, 5000..5005]);
        assert_eq!(uncovered(&batch(&read), &read, &apart).unwrap(), batch(&apart));
        // A hole among many rows is no reason to copy all of them, and long values are not read to be left out.
        assert_eq!(numbers.covering(&[0..5000, 5001..10_000], NEAR_SPREAD), None);
        assert_eq!(
            RowCost::new(1, 10_000, 10_000).covering(&every_other, NEAR_SPREAD),
            None
        );
        assert_eq!(RowCost::new(0, 0, 0).covering(&every_other, NEAR_SPREAD), None);
        assert_eq!(numbers.covering(&[0..10], NEAR_SPREAD), None);
        assert_eq!(numbers.covering(&every_other, 0), None);
    }

    #[test]
    fn test_a_few_times_as_many_rows_are_read_at_most() {
        let columns = RowCost::new(30, 30, 240);
        let every = |step: usize| (0..30_000).step_by(step).map(|row| row..row + 1).collect::<Vec<_>>();
        for (step, spread, is_covered) in [
            (2, 2, true),
            (3, 2, false),
            (4, 4, true),
            (5, 4, false),
            (100, 4, false),
        ] {
            assert_eq!(
                columns.covering(&every(step), spread).is_some(),
                is_covered,
                "{step} {spread}"
            );
        }
        let mut mixed = every(3);
        mixed.extend((40_000..90_000).step_by(77).map(|row| row..row + 9));
        mixed.extend((90_000..200_000).step_by(100).map(|row| row..row + 60));
        for spread in [2, 4, 9] {
            let read = columns.covering(&mixed, spread).unwrap();
            assert!(count(&read) <= spread * count(&mixed), "{spread}");
        }
    }
}
