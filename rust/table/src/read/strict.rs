//! Rebatches a stream to batches of an exact number of rows.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::scan::BatchStream;
use crate::error::TableError;

/// Batches that wait for more rows.
#[derive(Default)]
struct Pending {
    batches: VecDeque<RecordBatch>,
    rows: usize,
}

impl Pending {
    fn push(&mut self, batch: RecordBatch) {
        self.rows += batch.num_rows();
        self.batches.push_back(batch);
    }

    /// The next rows, at most `size`.
    fn take(&mut self, size: usize) -> Vec<RecordBatch> {
        let mut parts = Vec::new();
        let mut missing = size;
        while missing > 0 {
            let Some(batch) = self.batches.pop_front() else {
                break;
            };
            let rows = batch.num_rows().min(missing);
            if rows < batch.num_rows() {
                self.batches.push_front(batch.slice(rows, batch.num_rows() - rows));
            }
            parts.push(batch.slice(0, rows));
            missing -= rows;
        }
        self.rows -= size - missing;
        parts
    }
}

/// The rows of a stream in batches of exactly `size` rows; only the last may have fewer.
pub(super) fn strict(stream: BatchStream, size: usize) -> BatchStream {
    let size = size.max(1);
    let BatchStream {
        schema,
        batches,
        groups,
    } = stream;
    let shared = schema.clone();
    let batches = stream::try_unfold((batches, Pending::default()), move |(mut batches, mut pending)| {
        let schema = shared.clone();
        async move {
            while pending.rows < size {
                match batches.try_next().await? {
                    Some(batch) => pending.push(batch),
                    None if pending.rows == 0 => return Ok(None),
                    None => break,
                }
            }
            let joined = concat_batches(&schema, &pending.take(size)).map_err(|error| {
                TableError::unsupported(format!(
                    "batches of exactly {size} rows cannot be made: {error}; leave strict_batch_size out"
                ))
            })?;
            Ok::<_, TableError>(Some((joined, (batches, pending))))
        }
    });
    BatchStream {
        schema,
        batches: batches.boxed(),
        groups,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};
    use esker_store::block_on;

    use super::*;

    #[test]
    fn all_batches_but_the_last_are_of_the_size() {
        for size in [1, 2, 3, 7, 11, 100] {
            let mut next = 0;
            let batches: Vec<RecordBatch> = [0, 3, 1, 7, 0]
                .iter()
                .map(|rows| {
                    let ids: Int64Array = (next..next + rows).collect();
                    next += rows;
                    RecordBatch::try_from_iter([("id", Arc::new(ids) as ArrayRef)]).unwrap()
                })
                .collect();
            let stream = BatchStream {
                schema: batches[0].schema(),
                batches: stream::iter(batches.into_iter().map(Ok)).boxed(),
                groups: Arc::default(),
            };
            let found: Vec<RecordBatch> =
                block_on::<_, TableError>(strict(stream, size).batches.try_collect()).unwrap();
            let (last, others) = found.split_last().unwrap();
            assert!(others.iter().all(|batch| batch.num_rows() == size) && (1..=size).contains(&last.num_rows()));
            let column = concat_batches(&found[0].schema(), &found).unwrap();
            let ids = column.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
            assert_eq!(ids.values().to_vec(), (0..11).collect::<Vec<i64>>());
        }
    }
}
