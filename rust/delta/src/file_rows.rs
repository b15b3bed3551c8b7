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
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowSelection};
use parquet::arrow::{parquet_to_arrow_field_levels, ProjectionMask};
use parquet::schema::types::SchemaDescriptor;
use tokio::runtime::Handle;

use crate::checked_pages::CheckedGroup;
use crate::column_bytes::{ColumnBytes, Failure};
use crate::error::{DeltaError, Result};
use crate::guard::guarded;
use crate::sparse::ParquetFile;

/// Bytes of a local file that are read at a time, of all columns together.
const AHEAD: usize = 16 << 20;
/// Bytes that are read at a time of one column, at most and at least.
const WINDOW: Range<u64> = (64 << 10)..(1 << 20);

/// A selection with more rows than this for each of its parts is read part by part.
const SPARSE: usize = 64;

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
        let there = file.schema().root_schema().get_fields().len();
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
        let (file, schema) = (&self.file, self.file.schema());
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
        // A selection of few rows for each of its parts would be read as a mask: the rows between them, decoded and in memory. One that ends far
        // behind the last row is not; that part is trimmed.
        let behind = chosen.runs.len().saturating_add(1).saturating_mul(SPARSE);
        let total = file.rows(chosen.group).saturating_add(behind);
        let mut readers = Vec::with_capacity(leaves.len());
        for (leaves, input) in leaves.iter().zip(inputs) {
            let failure = input.failure();
            let selection = RowSelection::from_consecutive_ranges(chosen.runs.iter().cloned(), total);
            let made = guarded(&file.path, || {
                let mask = ProjectionMask::leaves(schema, leaves.iter().copied());
                let levels = parquet_to_arrow_field_levels(schema, mask, None)?;
                let pages = CheckedGroup::new(input, Arc::clone(file.metadata()), chosen.group);
                let rows = self.batch_rows.min(left);
                ParquetRecordBatchReader::try_new_with_row_groups(&levels, &pages, rows, Some(selection))
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int32Type;
    use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, ListArray, StringArray, UInt32Array};
    use arrow_select::concat::concat_batches;
    use arrow_select::take::take_record_batch;
    use bytes::Bytes;
    use esker_store::{memory, open};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use proptest::prelude::*;
    use std::collections::{BTreeSet, HashMap};

    /// How a file is laid out.
    #[derive(Debug, Clone)]
    struct Layout {
        group_rows: usize,
        page_rows: usize,
        compression: Compression,
        version: WriterVersion,
        dictionary: bool,
    }

    fn layouts() -> impl Strategy<Value = Layout> {
        let compressions = vec![Compression::UNCOMPRESSED, Compression::SNAPPY];
        let versions = vec![WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
        (
            1usize..120,
            1usize..40,
            prop::sample::select(compressions),
            prop::sample::select(versions),
            any::<bool>(),
        )
            .prop_map(|(group_rows, page_rows, compression, version, dictionary)| Layout {
                group_rows,
                page_rows,
                compression,
                version,
                dictionary,
            })
    }

    fn rows_of(count: usize) -> RecordBatch {
        let numbers = 0..i64::try_from(count).unwrap();
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers.clone()));
        let values: ArrayRef = Arc::new(Float64Array::from_iter(
            numbers.clone().map(|n| (n % 5 != 1).then_some(n as f64 / 3.0)),
        ));
        let texts = numbers
            .clone()
            .map(|n| (n % 7 != 2).then(|| format!("text {}", n % 11)));
        let texts: ArrayRef = Arc::new(StringArray::from_iter(texts));
        let lists = numbers.map(|n| (n % 4 != 3).then(|| (0..n % 6).map(|item| (item != 2).then_some(item as i32))));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
        RecordBatch::try_from_iter([("id", ids), ("x", values), ("t", texts), ("l", lists)]).unwrap()
    }

    fn written(rows: &RecordBatch, layout: &Layout) -> Vec<u8> {
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(layout.group_rows))
            .set_data_page_row_count_limit(layout.page_rows)
            .set_write_batch_size(layout.page_rows.min(7))
            .set_compression(layout.compression)
            .set_writer_version(layout.version)
            .set_dictionary_enabled(layout.dictionary)
            .build();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), Some(properties)).unwrap();
        writer.write(rows).unwrap();
        writer.close().unwrap();
        bytes
    }

    /// A store that is far, of which column chunks are fetched, and a local one, which is read in windows.
    fn stores(folder: &std::path::Path) -> [StoreRef; 2] {
        let far: StoreRef = Arc::new(memory::private().unwrap());
        let near = open(folder.to_str().unwrap(), &HashMap::new(), false).unwrap();
        [far, near]
    }

    fn put(store: &StoreRef, bytes: &[u8]) {
        block_on(store.put("a.parquet", Bytes::copy_from_slice(bytes))).unwrap();
    }

    fn read(store: &StoreRef, columns: &[usize], rows: Vec<u64>, batch_rows: usize) -> Result<Vec<RecordBatch>> {
        let groups = block_on(ParquetFile::open(store, "a.parquet"))?.row_groups();
        let request = RowRequest {
            columns: columns.to_vec(),
            groups: (0..groups).collect(),
            rows: rows.into(),
            batch_rows,
        };
        let mut found = FileRows::open(store, "a.parquet", &request)?;
        let mut batches = Vec::new();
        while let Some(batch) = found.next_batch()? {
            batches.push(batch);
        }
        Ok(batches)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn test_runs_hold_the_numbers_and_do_not_touch(numbers in prop::collection::btree_set(0u64..200, 0..80)) {
            let found = runs(numbers.iter().copied());
            let held: Vec<u64> = found.iter().cloned().flatten().map(|number| number as u64).collect();
            prop_assert_eq!(held, numbers.into_iter().collect::<Vec<_>>());
            prop_assert!(found.iter().zip(found.iter().skip(1)).all(|(one, next)| one.end < next.start));
        }

        #[test]
        fn test_chosen_rows_are_those_of_the_file_on_both_sides_of_pages_and_row_groups(
            count in 1usize..300,
            layout in layouts(),
            chosen in prop::collection::btree_set(0u64..300, 0..60),
            edges in prop::collection::vec((0usize..8, 0usize..8), 0..12),
            batch_rows in prop::sample::select(vec![1usize, 3, 1000]),
        ) {
            let rows = rows_of(count);
            let bytes = written(&rows, &layout);
            // Rows on both sides of where pages and row groups begin.
            let begins = edges.iter().map(|(group, page)| group * layout.group_rows + page * layout.page_rows);
            let beside = begins.flat_map(|row| [row.saturating_sub(1), row]).map(|row| row as u64);
            let chosen: BTreeSet<u64> = chosen.into_iter().chain(beside).collect();
            let there = chosen.iter().filter(|row| **row < count as u64).map(|row| *row as u32);
            let there = UInt32Array::from_iter_values(there);
            let columns = [3, 0, 2, 1];
            let expected = take_record_batch(&rows.project(&columns).unwrap(), &there).unwrap();
            let folder = tempfile::tempdir().unwrap();
            for store in stores(folder.path()) {
                put(&store, &bytes);
                let found = read(&store, &columns, chosen.iter().copied().collect(), batch_rows).unwrap();
                prop_assert!(found.iter().all(|batch| (1..=batch_rows).contains(&batch.num_rows())));
                let Some(first) = found.first() else {
                    prop_assert_eq!(expected.num_rows(), 0);
                    continue;
                };
                let found = concat_batches(&first.schema(), &found).unwrap();
                for (one, other) in found.columns().iter().zip(expected.columns()) {
                    prop_assert_eq!(one.to_data(), other.to_data());
                }
            }
        }

        #[test]
        fn test_damaged_files_are_rows_or_an_error(
            layout in layouts(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
            kept in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut bytes = written(&rows_of(90), &layout);
            for (place, value) in changes {
                let at = place.index(bytes.len());
                bytes[at] = value;
            }
            bytes.truncate(kept.map_or(bytes.len(), |kept| kept.index(bytes.len())));
            let folder = tempfile::tempdir().unwrap();
            for store in stores(folder.path()) {
                put(&store, &bytes);
                if let Ok(found) = read(&store, &[0, 1, 2, 3], vec![0, 6, 7, 44, 89], 2) {
                    prop_assert!(found.iter().map(RecordBatch::num_rows).sum::<usize>() <= 5);
                }
            }
        }
    }

    #[test]
    fn test_a_file_with_any_byte_damaged_is_rows_or_an_error() {
        let layouts = [
            (WriterVersion::PARQUET_1_0, false),
            (WriterVersion::PARQUET_1_0, true),
            (WriterVersion::PARQUET_2_0, false),
            (WriterVersion::PARQUET_2_0, true),
        ];
        let store: StoreRef = Arc::new(memory::private().unwrap());
        for (version, dictionary) in layouts {
            let layout = Layout {
                group_rows: 50,
                page_rows: 25,
                compression: Compression::UNCOMPRESSED,
                version,
                dictionary,
            };
            let whole = written(&rows_of(50), &layout);
            for at in 0..whole.len() {
                for value in [0, 1, 0x10, 0x7f, 0xff, whole[at] ^ 1, whole[at] ^ 0x80] {
                    let mut bytes = whole.clone();
                    bytes[at] = value;
                    put(&store, &bytes);
                    // Rows are skipped in front of these and between them.
                    if let Ok(found) = read(&store, &[0, 1, 2, 3], vec![3, 4, 20, 21, 49], 2) {
                        assert!(found.iter().map(RecordBatch::num_rows).sum::<usize>() <= 5);
                    }
                }
            }
        }
    }

    #[test]
    fn test_a_page_that_claims_terabytes_of_lengths_is_an_error() {
        let layout = Layout {
            group_rows: 50,
            page_rows: 25,
            compression: Compression::UNCOMPRESSED,
            version: WriterVersion::PARQUET_2_0,
            dictionary: false,
        };
        let whole = written(&rows_of(50), &layout);
        let store: StoreRef = Arc::new(memory::private().unwrap());
        // Differences in blocks of 128 in four parts, then how many there are.
        let headers: Vec<usize> = (0..whole.len())
            .filter(|at| whole[*at..].starts_with(&[0x80, 1, 4]))
            .collect();
        let mut refused = 0;
        for at in headers {
            let mut bytes = whole.clone();
            bytes[at + 3..at + 9].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
            put(&store, &bytes);
            let file = block_on(ParquetFile::open(&store, "a.parquet")).unwrap();
            for column in 0..3 {
                let sparse = read(&store, &[column], vec![3, 21, 49], 2);
                let all = block_on(file.read(&store, 0, &[column]));
                for error in [sparse.err(), all.err()].into_iter().flatten() {
                    let error = error.to_string();
                    refused += usize::from(error.contains("claims to have 4398046511103 lengths"));
                }
            }
        }
        assert_eq!(refused, 8, "prefixes and suffixes of two pages, read in two ways");
    }

    #[test]
    fn test_numbers_that_do_not_ascend_and_columns_that_are_not_there_are_refused() {
        let layout = Layout {
            group_rows: 10,
            page_rows: 4,
            compression: Compression::SNAPPY,
            version: WriterVersion::PARQUET_1_0,
            dictionary: true,
        };
        let folder = tempfile::tempdir().unwrap();
        for store in stores(folder.path()) {
            put(&store, &written(&rows_of(25), &layout));
            for rows in [vec![2, 2], vec![3, 1]] {
                let error = read(&store, &[0], rows, 10).unwrap_err();
                assert!(error.to_string().contains("ascend"), "{error}");
            }
            for columns in [vec![], vec![4]] {
                let error = read(&store, &columns, vec![1], 10).unwrap_err();
                assert!(error.to_string().contains("of the 4 columns"), "{error}");
            }
            assert!(read(&store, &[0], vec![25, 1 << 40], 10).unwrap().is_empty());
        }
    }
}
