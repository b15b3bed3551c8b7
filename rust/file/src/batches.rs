//! Reads a file's rows as a stream of batches: chunks of several batches are read ahead concurrently and cut into batches.

use std::ops::Range;

use arrow_array::RecordBatch;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use crate::error::{FileError, Result};
use crate::reader::{FileProjection, FileReader};

/// The target size of a chunk in bytes of the file.
const CHUNK_BYTES: u64 = 8 * 1024 * 1024;

/// The most rows in a chunk, unless a batch is larger.
const CHUNK_ROWS: u64 = 1 << 20;

/// How a stream of batches is cut and read ahead.
#[derive(Debug, Clone, Copy)]
pub struct BatchOptions {
    /// Rows in each batch but the last.
    pub batch_size: u64,
    /// Batches that may be read ahead.
    pub readahead: usize,
}

impl FileReader {
    /// Reads rows, sorted ranges that do not overlap, as batches in order. Runs on the tokio runtime that polls the stream.
    pub fn batches(
        &self,
        projection: FileProjection,
        rows: Vec<Range<u64>>,
        options: BatchOptions,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        if options.batch_size == 0 {
            return Err(FileError::invalid("expected batch_size > 0, found 0"));
        }
        let size = chunk_rows(projection.bytes_per_row(), options.batch_size);
        let batches_in_chunk = usize::try_from(size / options.batch_size).unwrap_or(usize::MAX).max(1);
        let threads = esker_store::cores();
        let side_by_side = options
            .readahead
            .div_ceil(batches_in_chunk)
            .clamp(1, threads.saturating_mul(2));
        let step = usize::try_from(options.batch_size).unwrap_or(usize::MAX);
        let reader = self.clone();
        let tasks = stream::iter(Chunks { rows, next: 0, size }).map(move |rows| {
            let (reader, projection) = (reader.clone(), projection.clone());
            async move {
                let task = tokio::spawn(async move { reader.read(&projection, &rows).await });
                match task.await {
                    Ok(batch) => batch,
                    Err(error) => Err(FileError::invalid(format!("a read task failed: {error}"))),
                }
            }
        });
        let batches = tasks.buffered(side_by_side).map_ok(move |batch| {
            let starts = (0..batch.num_rows()).step_by(step);
            let cut = starts.map(move |start| Ok(batch.slice(start, step.min(batch.num_rows() - start))));
            stream::iter(cut)
        });
        Ok(batches.try_flatten().boxed())
    }
}

/// The rows of a chunk: a multiple of the batch size, so that no batch is cut at the end of a chunk.
fn chunk_rows(bytes_per_row: u64, batch_size: u64) -> u64 {
    let rows = (CHUNK_BYTES / bytes_per_row.max(1)).clamp(1, CHUNK_ROWS);
    rows.div_ceil(batch_size).saturating_mul(batch_size)
}

/// Cuts sorted ranges into groups of `size` rows.
struct Chunks {
    rows: Vec<Range<u64>>,
    next: usize,
    size: u64,
}

impl Iterator for Chunks {
    type Item = Vec<Range<u64>>;

    fn next(&mut self) -> Option<Vec<Range<u64>>> {
        let mut room = self.size;
        let mut chunk = Vec::new();
        while let Some(range) = self.rows.get_mut(self.next).filter(|_| room > 0) {
            let taken = room.min(range.end.saturating_sub(range.start));
            let cut = range.start.saturating_add(taken);
            if taken > 0 {
                chunk.push(range.start..cut);
            }
            room -= taken;
            range.start = cut;
            if range.start >= range.end {
                self.next += 1;
            }
        }
        (!chunk.is_empty()).then_some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_ranges_are_cut_into_chunks_that_hold_each_row_once() {
        let rows = vec![0..5, 7..8, 8..8, 20..31];
        let chunks: Vec<_> = Chunks { rows, next: 0, size: 4 }.collect();
        assert_eq!(
            chunks,
            [
                vec![0..4],
                vec![4..5, 7..8, 20..22],
                vec![22..26],
                vec![26..30],
                vec![30..31]
            ]
        );
        assert!(Chunks {
            rows: vec![3..3],
            next: 0,
            size: 4
        }
        .next()
        .is_none());
    }

    #[test]
    fn test_a_chunk_is_whole_batches_of_about_eight_megabytes() {
        assert_eq!(chunk_rows(8, 1000), 1_049_000);
        assert_eq!(chunk_rows(1 << 30, 10), 10);
        assert_eq!(chunk_rows(0, u64::MAX), u64::MAX);
    }
}
