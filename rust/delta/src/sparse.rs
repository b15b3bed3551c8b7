//! Reads some columns of a Parquet file: the footer, then the ranges of those columns, and nothing else.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Fields;
use esker_store::StoreRef;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader};
use parquet::arrow::{parquet_to_arrow_field_levels, ProjectionMask};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::schema::types::SchemaDescriptor;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::checked_pages::CheckedGroup;
use crate::column_bytes::{ColumnBytes, Pieces};
use crate::error::{DeltaError, Result};
use crate::guard::guarded;

/// The first read from the end, in bytes: most footers are smaller, a larger one costs a second read.
const TAIL: u64 = 64 << 10;
/// The 4 bytes of the footer's length, and the magic number.
const TRAILER: u64 = 8;
/// The default batch size: small, as decoded batches are dropped soon.
const BATCH_ROWS: usize = 2 << 10;

/// A Parquet file with its footer.
#[derive(Debug, Clone)]
pub(crate) struct ParquetFile {
    pub(crate) path: String,
    size: u64,
    metadata: Arc<ParquetMetaData>,
    batch_rows: usize,
}

impl ParquetFile {
    /// Reads the footer.
    pub(crate) async fn open(store: &StoreRef, path: &str) -> Result<Self> {
        let tail = store.get_tail(path, TAIL).await?;
        let corrupt = |message: String| DeltaError::corrupt(path, message);
        let trailer = tail.bytes.len().checked_sub(8).and_then(|at| tail.bytes.get(at..));
        let Some([a, b, c, d, b'P', b'A', b'R', b'1']) = trailer else {
            return Err(corrupt(format!(
                "expected a Parquet file that ends with PAR1, found {} bytes that do not",
                tail.size
            )));
        };
        let length = u64::from(u32::from_le_bytes([*a, *b, *c, *d]));
        let Some(start) = tail.size.checked_sub(length + TRAILER) else {
            return Err(corrupt(format!(
                "its footer says that it has {length} bytes, but the file has {}",
                tail.size
            )));
        };
        let have = tail.size - tail.bytes.len() as u64;
        let footer = if start >= have {
            let skip = usize::try_from(start - have).unwrap_or(usize::MAX);
            let end = tail.bytes.len() - 8;
            tail.bytes.slice(skip.min(end)..end)
        } else {
            let wanted = [start..tail.size - TRAILER];
            store.get_ranges(path, &wanted).await?.pop().unwrap_or_default()
        };
        let metadata = guarded(path, || ParquetMetaDataReader::decode_metadata(&footer))?;
        Ok(Self {
            path: path.to_owned(),
            size: tail.size,
            metadata: Arc::new(metadata),
            batch_rows: BATCH_ROWS,
        })
    }

    /// The same in batches of so many rows.
    pub(crate) fn with_batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = rows;
        self
    }

    /// The compressed bytes of a leaf column in a row group, at most the file's size.
    pub(crate) fn bytes(&self, group: usize, leaf: &str) -> usize {
        let column = self.leaves(&[leaf]).first().copied();
        let column = column.and_then(|leaf| self.metadata.row_groups().get(group)?.columns().get(leaf));
        let bytes = column.and_then(|column| u64::try_from(column.compressed_size()).ok());
        usize::try_from(bytes.unwrap_or_default().min(self.size)).unwrap_or_default()
    }

    /// The columns, with the types of the Parquet schema (not of an embedded Arrow schema).
    pub(crate) fn fields(&self) -> Result<Fields> {
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = guarded(&self.path, || {
            ArrowReaderMetadata::try_new(self.metadata.clone(), options)
        })?;
        Ok(metadata.schema().fields().clone())
    }

    /// The number of rows that a row group claims.
    pub(crate) fn rows(&self, group: usize) -> usize {
        let rows = self.metadata.row_groups().get(group).map(|group| group.num_rows());
        rows.and_then(|rows| usize::try_from(rows).ok()).unwrap_or_default()
    }

    /// The null count of a leaf column in a row group, if its statistics have it.
    pub(crate) fn null_count(&self, group: usize, leaf: usize) -> Option<u64> {
        let column = self.metadata.row_groups().get(group)?.columns().get(leaf)?;
        column.statistics()?.null_count_opt()
    }

    /// The footer.
    pub(crate) fn metadata(&self) -> &Arc<ParquetMetaData> {
        &self.metadata
    }

    /// The columns as Parquet has them.
    pub(crate) fn schema(&self) -> &SchemaDescriptor {
        self.metadata.file_metadata().schema_descr()
    }

    /// Bytes of the file.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn row_groups(&self) -> usize {
        self.metadata.num_row_groups()
    }

    /// The leaf columns whose path is one of these or lies below one.
    pub(crate) fn leaves(&self, roots: &[&str]) -> Vec<usize> {
        let chosen = self.schema().columns().iter().enumerate().filter(|(_, column)| {
            let path = column.path().string();
            roots.iter().any(|root| {
                path.strip_prefix(root)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        });
        chosen.map(|(leaf, _)| leaf).collect()
    }

    /// Whether all values of the leaf columns are null in a row group, as its statistics say.
    pub(crate) fn all_null(&self, group: usize, leaves: &[usize]) -> bool {
        let Some(group) = self.metadata.row_groups().get(group) else {
            return false;
        };
        leaves.iter().all(|leaf| {
            let column = group.columns().get(*leaf);
            let nulls = column.and_then(|column| column.statistics()?.null_count_opt());
            nulls.is_some() && nulls == u64::try_from(column.map_or(0, |column| column.num_values())).ok()
        })
    }

    /// Reads some leaf columns of a row group, batch after batch, on a thread that may block. Types are those of the Parquet schema, not of
    /// an embedded Arrow schema.
    pub(crate) async fn fold<T: Send + 'static>(
        &self,
        store: &StoreRef,
        group: usize,
        leaves: &[usize],
        mut state: T,
        mut step: impl FnMut(&mut T, RecordBatch) -> Result<()> + Send + 'static,
    ) -> Result<T> {
        let input = self.fetch(store, group, leaves).await?;
        let (file, leaves, failure) = (self.clone(), leaves.to_vec(), input.failure());
        let task = tokio::task::spawn_blocking(move || {
            let mut reader = guarded(&file.path, || file.reader(input, group, &leaves))?;
            while let Some(batch) = guarded(&file.path, || Ok(reader.next().transpose()?))? {
                step(&mut state, batch)?;
            }
            Ok(state)
        });
        let done = task
            .await
            .unwrap_or_else(|error| Err(DeltaError::corrupt(&self.path, error.to_string())));
        done.map_err(|error| failure.take().map_or(error, DeltaError::Store))
    }

    /// Reads some leaf columns of a row group; the next batch is decoded while one is processed.
    pub(crate) fn batches(&self, store: &StoreRef, group: usize, leaves: &[usize]) -> Batches {
        let (sender, decoded) = mpsc::channel(1);
        let (file, store, leaves) = (self.clone(), store.clone(), leaves.to_vec());
        let task = tokio::spawn(async move {
            let step = move |(): &mut (), batch| {
                let sent = sender.blocking_send(batch);
                sent.map_err(|_| DeltaError::invalid("nobody waits for the rows"))
            };
            file.fold(&store, group, &leaves, (), step).await
        });
        Batches {
            decoded,
            task: Some(task),
        }
    }

    /// Reads some leaf columns of a row group at once.
    pub(crate) async fn read(&self, store: &StoreRef, group: usize, leaves: &[usize]) -> Result<Vec<RecordBatch>> {
        let push = |batches: &mut Vec<RecordBatch>, batch| {
            batches.push(batch);
            Ok(())
        };
        self.fold(store, group, leaves, Vec::new(), push).await
    }

    /// The bytes of some leaf columns of a row group.
    pub(crate) async fn fetch(&self, store: &StoreRef, group: usize, leaves: &[usize]) -> Result<ColumnBytes> {
        let Some(columns) = self.metadata.row_groups().get(group) else {
            return Err(DeltaError::corrupt(
                &self.path,
                format!("expected a row group {group}, found none"),
            ));
        };
        let mut ranges = Vec::new();
        for leaf in leaves {
            let Some(column) = columns.columns().get(*leaf) else {
                continue;
            };
            let (start, len) = guarded(&self.path, || Ok(column.byte_range()))?;
            let end = start.checked_add(len).filter(|end| *end <= self.size).ok_or_else(|| {
                DeltaError::corrupt(
                    &self.path,
                    format!("a column of {len} bytes at {start} in a file of {} bytes", self.size),
                )
            })?;
            ranges.push(start..end);
        }
        if !store.is_far() {
            return Ok(ColumnBytes::near(store, &self.path, self.size));
        }
        let bytes = store.get_ranges(&self.path, &ranges).await?;
        let pieces = ranges.iter().map(|range| range.start).zip(bytes);
        Ok(ColumnBytes::Read(Pieces::new(self.size, pieces.collect())))
    }

    fn reader(
        &self,
        input: ColumnBytes,
        group: usize,
        leaves: &[usize],
    ) -> parquet::errors::Result<ParquetRecordBatchReader> {
        let mask = ProjectionMask::leaves(self.schema(), leaves.iter().copied());
        let levels = parquet_to_arrow_field_levels(self.schema(), mask, None)?;
        let pages = CheckedGroup::new(input, self.metadata.clone(), group);
        let rows = self.batch_rows.min(self.rows(group));
        ParquetRecordBatchReader::try_new_with_row_groups(&levels, &pages, rows, None)
    }
}

/// The batches of a row group, as they are decoded.
#[derive(Debug)]
pub(crate) struct Batches {
    decoded: mpsc::Receiver<RecordBatch>,
    task: Option<JoinHandle<Result<()>>>,
}

impl Batches {
    /// The next batch; `None` after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(batch) = self.decoded.recv().await {
            return Ok(Some(batch));
        }
        if let Some(task) = self.task.take() {
            task.await
                .unwrap_or_else(|error| Err(DeltaError::invalid(error.to_string())))?;
        }
        Ok(None)
    }
}
