//! Many short runs of rows are read with the rows between them, which are left out then: each run costs a look-up in each column, which takes
//! as long as to decode hundreds of values. Where every other row is deleted a scan takes a tenth of the time.

use std::ops::Range;

use arrow_array::{BooleanArray, RecordBatch};

use super::rows::{count, mask_of};
use crate::error::{Result, TableError};

/// The cost of one more run of rows in a column, in bytes that could be read and filtered in the same time (measured: about 200 ns).
pub(super) const RUN_COST: u64 = 1600;

/// To decode takes as long as to read so many times fewer bytes.
pub(super) const DECODED: u64 = 4;

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
            run: columns.saturating_mul(RUN_COST),
            row: in_files.max(in_memory / DECODED).max(1),
            kept: in_memory / DECODED,
        }
    }

    /// The runs to read instead of `rows`, if that costs less.
    pub(crate) fn covering(self, rows: &[Range<u64>]) -> Option<Vec<Range<u64>>> {
        if rows.len() < 2 || self.run == 0 {
            return None;
        }
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in rows {
            match joined.last_mut() {
                Some(last) if range.start.saturating_sub(last.end).saturating_mul(self.row) < self.run => {
                    last.end = range.end;
                }
                _ => joined.push(range.clone()),
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
        let read = numbers.covering(&every_other).unwrap();
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
        let read = numbers.covering(&apart).unwrap();
        assert_eq!(read, vec![0..5, 5000..5005]);
        assert_eq!(uncovered(&batch(&read), &read, &apart).unwrap(), batch(&apart));
        // A hole among many rows is no reason to copy all of them, and long values are not read to be left out.
        assert_eq!(numbers.covering(&[0..5000, 5001..10_000]), None);
        assert_eq!(RowCost::new(1, 10_000, 10_000).covering(&every_other), None);
        assert_eq!(RowCost::new(0, 0, 0).covering(&every_other), None);
        assert_eq!(numbers.covering(&[0..10]), None);
    }
}
