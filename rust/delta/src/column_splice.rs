//! Copies a Parquet file with some of its columns replaced: the pages of the others are copied as they are, without being decoded.
//!
//! ```text
//! old file:  | a | b | c |  | a | b | c |  footer
//! new parts:     | b'|          | b'|
//! new file:  | a | b'| c |  | a | b'| c |  footer
//! ```
//!
//! The new file goes to its store while it is made: a piece of one column is in memory at a time, and the part that replaces one.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use esker_store::{block_on, StoreRef};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::ChunkReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::error::{DeltaError, Result};
use crate::guard::guarded;
use crate::sparse::ParquetFile;
use crate::splice_output::SpliceOutput;
use crate::spliced_columns::{columns, leaves, Failure, OldPages, SplicedColumn};

/// Entries of a footer that describe the types of columns, which are not what they were where one is replaced.
const OF_TYPES: [&str; 2] = ["ARROW:schema", "org.apache.spark.sql.parquet.row.metadata"];
/// Entries that say how all values of a file are meant, in another calendar: new values are not meant so.
const OF_VALUES: &str = "org.apache.spark.legacy";

/// A copy in the making.
#[derive(Debug)]
pub struct ColumnSplice {
    store: StoreRef,
    file: ParquetFile,
    copy: Option<Copy>,
    next: usize,
}

/// The new file.
#[derive(Debug)]
struct Copy {
    columns: Vec<SplicedColumn>,
    writer: SerializedFileWriter<SpliceOutput>,
    output: SpliceOutput,
    has_rows: bool,
}

impl ColumnSplice {
    /// Opens the file that is copied.
    ///
    /// # Errors
    /// No Parquet; the store fails.
    pub fn open(store: &StoreRef, path: &str) -> Result<Self> {
        Ok(Self {
            store: store.clone(),
            file: block_on(ParquetFile::open(store, path))?,
            copy: None,
            next: 0,
        })
    }

    /// Whether columns of the file can be replaced: its values are not meant in another calendar, nor does it lie in several files.
    #[must_use]
    pub fn fits(&self) -> bool {
        let metadata = self.file.metadata();
        let is_legacy = entries(metadata).any(|entry| entry.key.starts_with(OF_VALUES));
        let mut columns = metadata.row_groups().iter().flat_map(|group| group.columns());
        !is_legacy && columns.all(|column| column.file_path().is_none())
    }

    /// The number of rows of each row group.
    #[must_use]
    pub fn row_groups(&self) -> Vec<usize> {
        (0..self.file.row_groups()).map(|group| self.file.rows(group)).collect()
    }

    /// Begins the new file at a path of a store. `schema` is a Parquet file without rows that has the columns that are replaced; columns
    /// that the old file does not have are its last ones. With `only` there are no others.
    ///
    /// # Errors
    /// Bytes that are no Parquet.
    pub fn begin(&mut self, store: &StoreRef, path: &str, schema: &Bytes, only: bool) -> Result<()> {
        let output = SpliceOutput::new(store, path);
        let old = self.file.metadata();
        let columns = guarded(&self.file.path, || {
            let new = ParquetMetaDataReader::new().parse_and_finish(schema)?;
            let [olds, news] = [old, &new].map(|metadata| metadata.file_metadata().schema_descr());
            Ok(columns(olds, news, only))
        })?;
        let writer = guarded(&self.file.path, || begun(output.clone(), old, &columns))?;
        self.copy = Some(Copy {
            columns,
            writer,
            output,
            has_rows: false,
        });
        Ok(())
    }

    /// Copies the next row group, which has so many rows in the copy: those of the old one unless all columns are replaced; none of it, if
    /// there are none. `part` gives, column by column, a Parquet file that has one row group of it alone; `None` stops the copy.
    ///
    /// # Errors
    /// Another number of rows; bytes that are no Parquet; the store fails.
    pub fn append(&mut self, rows: usize, mut part: impl FnMut(&str) -> Option<Bytes>) -> Result<()> {
        let (file, group) = (&self.file, self.next);
        let Some(copy) = self.copy.as_mut().filter(|_| group < file.row_groups()) else {
            return Err(DeltaError::invalid(format!(
                "expected a copy that has begun and at most {} row groups, found a further one",
                file.row_groups()
            )));
        };
        self.next += 1;
        if rows == 0 {
            return Ok(());
        }
        let (output, failure) = (copy.output.clone(), Failure::default());
        let stored = |error| match output.failure().or_else(|| failure.take()) {
            Some(error) => DeltaError::Store(error),
            None => error,
        };
        let mut made = guarded(&file.path, || copy.writer.next_row_group()).map_err(stored)?;
        for column in &copy.columns {
            let Some(kept) = column.kept else {
                let name = column.field.name();
                let bytes = part(name).ok_or_else(|| DeltaError::invalid(format!("no values of column {name:?}")))?;
                put(file, column, rows, &bytes, &mut made).map_err(stored)?;
                continue;
            };
            let there = file.rows(group);
            if there != rows {
                return Err(expected_rows(rows, there));
            }
            let descriptor = file.metadata().file_metadata().schema_descr();
            for leaf in leaves(descriptor, kept) {
                let group = file.metadata().row_groups().get(group);
                let leaf = group.and_then(|group| group.columns().get(leaf));
                let leaf =
                    leaf.ok_or_else(|| DeltaError::corrupt(&file.path, "a row group without one of the columns"))?;
                let pages = OldPages {
                    store: self.store.clone(),
                    path: Arc::from(file.path.as_str()),
                    end: range(file, leaf)?.end,
                    failure: failure.clone(),
                };
                appended(file, leaf, rows, &pages, &mut made).map_err(stored)?;
            }
        }
        guarded(&file.path, || made.close()).map_err(stored)?;
        copy.has_rows = true;
        Ok(())
    }

    /// Ends the copy, which is visible then; its size in bytes.
    ///
    /// # Errors
    /// Row groups that are missing.
    pub fn finish(&mut self) -> Result<u64> {
        let (there, next) = (self.file.row_groups(), self.next);
        let Some(copy) = self.copy.as_mut().filter(|copy| copy.has_rows && next == there) else {
            return Err(DeltaError::invalid(format!(
                "expected {there} row groups (one at least), found {next}"
            )));
        };
        let ended = guarded(&self.file.path, || copy.writer.finish());
        ended.map_err(|error| copy.output.failure().map_or(error, DeltaError::Store))?;
        copy.output.finish()
    }

    /// Leaves nothing behind of a copy that is not finished.
    ///
    /// # Errors
    /// The store fails.
    pub fn abort(&mut self) -> Result<()> {
        self.copy.take().map_or(Ok(()), |copy| copy.output.abort())
    }
}

/// Puts the column of a part into a row group.
fn put(
    file: &ParquetFile,
    column: &SplicedColumn,
    rows: usize,
    part: &Bytes,
    made: &mut SerializedRowGroupWriter<'_, SpliceOutput>,
) -> Result<()> {
    let new = guarded(&file.path, || ParquetMetaDataReader::new().parse_and_finish(part))?;
    let [group] = new.row_groups() else {
        let found = new.num_row_groups();
        return Err(DeltaError::invalid(format!(
            "expected one row group of new values, found {found}"
        )));
    };
    let found = usize::try_from(group.num_rows()).unwrap_or_default();
    if found != rows {
        return Err(expected_rows(rows, found));
    }
    let [field] = new.file_metadata().schema_descr().root_schema().get_fields() else {
        return Err(DeltaError::invalid("expected one column of new values"));
    };
    if *field != column.field {
        return Err(DeltaError::invalid(format!(
            "expected values of column {:?} as the copy has it, found {:?}",
            column.field.name(),
            field.name()
        )));
    }
    for leaf in group.columns() {
        appended(file, leaf, rows, part, made)?;
    }
    Ok(())
}

/// Puts the pages of a leaf column into a row group.
fn appended<R: ChunkReader>(
    file: &ParquetFile,
    leaf: &ColumnChunkMetaData,
    rows: usize,
    pages: &R,
    made: &mut SerializedRowGroupWriter<'_, SpliceOutput>,
) -> Result<()> {
    let close = ColumnCloseResult {
        bytes_written: u64::try_from(leaf.compressed_size()).unwrap_or_default(),
        rows_written: rows as u64,
        metadata: leaf.clone(),
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    guarded(&file.path, || made.append_column(pages, close))
}

fn expected_rows(rows: usize, found: usize) -> DeltaError {
    DeltaError::invalid(format!("expected values of {rows} rows, found {found}"))
}

/// Where the bytes of an old column lie.
fn range(file: &ParquetFile, column: &ColumnChunkMetaData) -> Result<Range<u64>> {
    let (start, length) = guarded(&file.path, || Ok(column.byte_range()))?;
    let end = start.checked_add(length);
    end.filter(|end| *end <= file.size())
        .map(|end| start..end)
        .ok_or_else(|| DeltaError::corrupt(&file.path, format!("a column of {length} bytes at {start}")))
}

fn entries(metadata: &ParquetMetaData) -> impl Iterator<Item = &KeyValue> {
    metadata.file_metadata().key_value_metadata().into_iter().flatten()
}

fn begun(
    output: SpliceOutput,
    old: &ParquetMetaData,
    columns: &[SplicedColumn],
) -> Result<SerializedFileWriter<SpliceOutput>, ParquetError> {
    let root = Type::group_type_builder(old.file_metadata().schema_descr().root_schema().name())
        .with_fields(columns.iter().map(|column| column.field.clone()).collect())
        .build()?;
    let kept: Vec<KeyValue> = entries(old)
        .filter(|entry| !OF_TYPES.contains(&entry.key.as_str()))
        .cloned()
        .collect();
    let properties = WriterProperties::builder()
        .set_created_by(concat!("esker ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata((!kept.is_empty()).then_some(kept))
        .build();
    SerializedFileWriter::new(output, Arc::new(root), Arc::new(properties))
}
