//! Reads chosen rows of some columns of a Parquet file: pages without any of them are passed over by their headers, values between them are
//! skipped without being decoded.
//!
//! ```text
//! rows 7, 90,000:  | page: 0 .. 20,000 | page | page | page | page: 80,000 .. 100,000 |
//!                    skip 7, read 1      header of each       skip 10,000, read 1
//! ```
//!
//! Each column has a reader of its own; a page of each is in memory at a time, and for a store behind a network the columns of one row group.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::ScalarBuffer;
use arrow_schema::Schema;
use esker_store::{block_on, StoreRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelectionPolicy,
};
use parquet::arrow::ProjectionMask;
use parquet::schema::types::SchemaDescriptor;
use tokio::runtime::Handle;

use crate::column_bytes::{ColumnBytes, Failure};
use crate::error::{DeltaError, Result};
use crate::sparse::{guarded, ParquetFile};

/// Bytes of a local file that are read at a time, of all columns together.
const AHEAD: usize = 16 << 20;
/// Bytes that are read at a time of one column, at most and at least.
const WINDOW: Range<u64> = (64 << 10)..(1 << 20);

/// Which rows are read.
#[derive(Debug)]
pub struct RowRequest {
    /// The places of columns at the top of the file's schema, in the order in which they are handed out.
    pub columns: Vec<usize>,
    /// The row groups, ascending.
    pub groups: Vec<usize>,
    /// Numbers of rows in the file, ascending; those of other row groups are passed over.
    pub rows: ScalarBuffer<u64>,
    /// Rows of a batch at most.
    pub batch_rows: usize,
}

/// Chosen rows of a file, batch by batch.
#[derive(Debug)]
pub struct FileRows {
    store: StoreRef,
    file: ParquetFile,
    metadata: ArrowReaderMetadata,
    columns: Vec<usize>,
    batch_rows: usize,
    waiting: VecDeque<GroupRows>,
    current: Option<OpenGroup>,
}

/// The chosen rows of a row group, by their numbers in it.
#[derive(Debug)]
struct GroupRows {
    group: usize,
    runs: Vec<Range<usize>>,
}

/// A row group that is being read.
struct OpenGroup {
    readers: Vec<(ParquetRecordBatchReader, Failure)>,
    left: usize,
}

impl std::fmt::Debug for OpenGroup {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "OpenGroup({} rows left)", self.left)
    }
}

impl FileRows {
    /// Opens a file.
    ///
    /// # Errors
    /// No Parquet; columns or row groups that it does not have; numbers that do not ascend; the store fails.
    pub fn open(store: &StoreRef, path: &str, request: &RowRequest) -> Result<Self> {
        let file = block_on(ParquetFile::open(store, path))?;
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = guarded(path, || ArrowReaderMetadata::try_new(file.metadata().clone(), options))?;
        let there = metadata.parquet_schema().root_schema().get_fields().len();
        if request.columns.is_empty() || request.columns.iter().any(|column| *column >= there) {
            return Err(DeltaError::invalid(format!(
                "expected some of the {there} columns of {path}, found {:?}",
                request.columns
            )));
        }
        let waiting = by_group(&file, request)?;
        Ok(Self {
            store: store.clone(),
            file,
            metadata,
            columns: request.columns.clone(),
            batch_rows: request.batch_rows.max(1),
            waiting,
            current: None,
        })
    }

    /// The next batch, of rows of one row group, with the types of the Parquet schema; `None` after the last.
    ///
    /// # Errors
    /// Bytes that are no Parquet, or other rows than the footer says; the store fails.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(current) = self.current.as_mut().filter(|current| current.left > 0) {
                return current.next_batch(&self.file.path, self.batch_rows).map(Some);
            }
            self.current = None;
            let Some(next) = self.waiting.pop_front() else {
                return Ok(None);
            };
            self.current = Some(self.begin(&next)?);
        }
    }

    fn begin(&self, chosen: &GroupRows) -> Result<OpenGroup> {
        let (file, schema) = (&self.file, self.metadata.parquet_schema());
        let left = chosen.runs.iter().map(ExactSizeIterator::len).sum();
        let leaves: Vec<Vec<usize>> = self.columns.iter().map(|column| leaves(schema, *column)).collect();
        let inputs = if self.store.is_far() {
            block_on(async {
                let mut inputs = Vec::with_capacity(leaves.len());
                for leaves in &leaves {
                    inputs.push(file.fetch(&self.store, chosen.group, leaves).await?);
                }
                Ok::<_, DeltaError>(inputs)
            })?
        } else {
            let runtime = block_on(async { Ok::<_, DeltaError>(Handle::current()) })?;
            let window = (AHEAD / self.columns.len()) as u64;
            let window = window.clamp(WINDOW.start, WINDOW.end);
            let made = leaves
                .iter()
                .map(|_| ColumnBytes::windows(&self.store, &file.path, file.size(), &runtime, window));
            made.collect()
        };
        let total = file.rows(chosen.group);
        let mut readers = Vec::with_capacity(leaves.len());
        for (leaves, input) in leaves.iter().zip(inputs) {
            let failure = input.failure();
            let selection = RowSelection::from_consecutive_ranges(chosen.runs.iter().cloned(), total);
            let made = guarded(&file.path, || {
                ParquetRecordBatchReaderBuilder::new_with_metadata(input, self.metadata.clone())
                    .with_projection(ProjectionMask::leaves(schema, leaves.iter().copied()))
                    .with_row_groups(vec![chosen.group])
                    .with_row_selection(selection)
                    .with_row_selection_policy(RowSelectionPolicy::Selectors)
                    .with_batch_size(self.batch_rows)
                    .build()
            });
            readers.push((made.map_err(|error| stored(error, &failure))?, failure));
        }
        Ok(OpenGroup { readers, left })
    }
}

impl OpenGroup {
    fn next_batch(&mut self, path: &str, most: usize) -> Result<RecordBatch> {
        let expected = self.left.min(most);
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for (reader, failure) in &mut self.readers {
            let read = guarded(path, || Ok(reader.next().transpose()?));
            let batch = read.map_err(|error| stored(error, failure))?;
            let found = batch.as_ref().map_or(0, RecordBatch::num_rows);
            let batch = batch.filter(|_| found == expected).ok_or_else(|| {
                DeltaError::corrupt(path, format!("expected {expected} rows of a column, found {found}"))
            })?;
            fields.extend(batch.schema_ref().fields().iter().cloned());
            columns.extend(batch.columns().iter().cloned());
        }
        self.left -= expected;
        let made = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
        made.map_err(|error| DeltaError::corrupt(path, error.to_string()))
    }
}

fn stored(error: DeltaError, failure: &Failure) -> DeltaError {
    failure.take().map_or(error, DeltaError::Store)
}

/// The numbers of the leaves of a column at the top of a schema.
fn leaves(schema: &SchemaDescriptor, root: usize) -> Vec<usize> {
    let all = 0..schema.num_columns();
    all.filter(|leaf| schema.get_column_root_idx(*leaf) == root).collect()
}

/// The rows of each row group that has some of them.
fn by_group(file: &ParquetFile, request: &RowRequest) -> Result<VecDeque<GroupRows>> {
    let rows: &[u64] = &request.rows;
    if rows.iter().zip(rows.iter().skip(1)).any(|(one, next)| one >= next) {
        return Err(DeltaError::invalid(
            "expected numbers of rows that ascend, found others",
        ));
    }
    let (mut found, mut start, mut next) = (VecDeque::new(), 0_u64, 0);
    let mut asked = request.groups.iter().copied().peekable();
    for group in 0..file.row_groups() {
        let end = start.saturating_add(file.rows(group) as u64);
        if asked.next_if_eq(&group).is_some() {
            let rest = rows.get(next..).unwrap_or_default();
            let first = rest.partition_point(|row| *row < start);
            let last = rest.partition_point(|row| *row < end);
            let here = rest.get(first..last).unwrap_or_default();
            next += last;
            if !here.is_empty() {
                let runs = runs(here.iter().map(|row| row - start));
                found.push_back(GroupRows { group, runs });
            }
        }
        start = end;
    }
    match asked.next() {
        None => Ok(found),
        Some(other) => Err(DeltaError::invalid(format!(
            "expected row groups of the {} in ascending order, found {other}",
            file.row_groups()
        ))),
    }
}

/// Numbers that ascend, as ranges.
fn runs(numbers: impl Iterator<Item = u64>) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for number in numbers.filter_map(|number| usize::try_from(number).ok()) {
        match found.last_mut().filter(|last| last.end == number) {
            Some(last) => last.end = number.saturating_add(1),
            None => found.push(number..number.saturating_add(1)),
        }
    }
    found
}
