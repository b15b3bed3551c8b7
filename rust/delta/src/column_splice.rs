//! Copies a Parquet file with some of its columns replaced: the pages of the others are copied as they are, without being decoded.
//!
//! ```text
//! old file:  | a | b | c |  | a | b | c |  footer
//! new parts:     | b'|          | b'|
//! new file:  | a | b'| c |  | a | b'| c |  footer
//! ```

use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes};
use esker_store::{block_on, StoreRef};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{SchemaDescriptor, Type};

use crate::error::{DeltaError, Result};
use crate::sparse::{guarded, ParquetFile};

/// Entries of a footer that describe the types of columns, which are not what they were where one is replaced.
const OF_TYPES: [&str; 2] = ["ARROW:schema", "org.apache.spark.sql.parquet.row.metadata"];
/// Entries that say how all values of a file are meant, in another calendar: new values are not meant so.
const OF_VALUES: &str = "org.apache.spark.legacy";

/// A copy in the making.
#[derive(Debug)]
pub struct ColumnSplice {
    store: StoreRef,
    file: ParquetFile,
    made: Made,
    writer: Option<SerializedFileWriter<Made>>,
    next: usize,
}

/// The bytes of the copy that were not taken yet.
#[derive(Debug, Clone, Default)]
struct Made(Arc<Mutex<Vec<u8>>>);

impl Made {
    fn reserve(&self, more: usize) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .reserve_exact(more);
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Made {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where a leaf column of the copy comes from: the new part or the old file, and which leaf it is there.
#[derive(Debug, Clone, Copy)]
struct Leaf {
    is_new: bool,
    index: usize,
}

/// Some bytes of a file, from an offset on.
struct Piece {
    start: u64,
    bytes: Bytes,
}

impl Piece {
    fn from(&self, start: u64, length: Option<usize>) -> parquet::errors::Result<Bytes> {
        let skip = start
            .checked_sub(self.start)
            .and_then(|skip| usize::try_from(skip).ok());
        let end = skip.and_then(|skip| skip.checked_add(length.unwrap_or(self.bytes.len().saturating_sub(skip))));
        match (skip, end) {
            (Some(skip), Some(end)) if skip <= end && end <= self.bytes.len() => Ok(self.bytes.slice(skip..end)),
            _ => Err(ParquetError::EOF(format!("no byte {start} of a column"))),
        }
    }
}

impl Length for Piece {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Piece {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(self.from(start, None)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.from(start, Some(length))
    }
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
            made: Made::default(),
            writer: None,
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

    /// Copies the next row group with the columns of `part`, a Parquet file with one row group of as many rows, in place of its own. Columns
    /// that the old file does not have are its last ones.
    ///
    /// Returns the next bytes of the copy.
    ///
    /// # Errors
    /// Another number of rows; bytes that are no Parquet; the store fails.
    pub fn append(&mut self, part: Bytes) -> Result<Vec<u8>> {
        let path = self.file.path.clone();
        let new = guarded(&path, || ParquetMetaDataReader::new().parse_and_finish(&part))?;
        let rows = self.file.rows(self.next);
        let [group] = new.row_groups() else {
            let found = new.num_row_groups();
            return Err(DeltaError::invalid(format!(
                "expected one row group of new values, found {found}"
            )));
        };
        if self.next >= self.file.row_groups() || usize::try_from(group.num_rows()).ok() != Some(rows) {
            let found = group.num_rows();
            return Err(DeltaError::invalid(format!(
                "expected new values for row group {} of {rows} rows, found {found}",
                self.next
            )));
        }
        let old = self.file.metadata().clone();
        let mut columns = Vec::new();
        for leaf in leaves(old.file_metadata().schema_descr(), new.file_metadata().schema_descr()) {
            let (metadata, group) = if leaf.is_new { (&new, 0) } else { (&*old, self.next) };
            let column = metadata
                .row_groups()
                .get(group)
                .and_then(|group| group.columns().get(leaf.index));
            let column = column.ok_or_else(|| DeltaError::corrupt(&path, "a row group without one of the columns"))?;
            let range = self.range(column, leaf.is_new)?;
            columns.push((leaf.is_new, column.clone(), range));
        }
        if self.writer.is_none() {
            self.writer = Some(guarded(&path, || begun(self.made.clone(), &old, &new))?);
        }
        let Some(writer) = self.writer.as_mut() else {
            return Err(DeltaError::invalid("expected a copy that has begun"));
        };
        let size: u64 = columns.iter().map(|(.., range)| range.end - range.start).sum();
        self.made.reserve(usize::try_from(size).unwrap_or_default());
        let mut group = guarded(&path, || writer.next_row_group())?;
        for (is_new, column, range) in columns {
            let piece = Piece {
                start: range.start,
                bytes: if is_new {
                    let place = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
                    place.map_or_else(Bytes::new, |(start, end)| {
                        part.slice(start.min(part.len())..end.min(part.len()))
                    })
                } else {
                    let mut read = block_on(self.store.get_ranges(&path, &[range]))?;
                    read.pop().unwrap_or_default()
                },
            };
            let close = ColumnCloseResult {
                bytes_written: u64::try_from(column.compressed_size()).unwrap_or_default(),
                rows_written: rows as u64,
                metadata: column,
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            guarded(&path, || group.append_column(&piece, close))?;
        }
        guarded(&path, || group.close())?;
        self.next += 1;
        Ok(self.made.take())
    }

    /// Ends the copy: its last bytes.
    ///
    /// # Errors
    /// Row groups that are missing.
    pub fn finish(&mut self) -> Result<Vec<u8>> {
        let there = self.file.row_groups();
        let Some(writer) = self.writer.as_mut().filter(|_| self.next == there) else {
            let next = self.next;
            return Err(DeltaError::invalid(format!(
                "expected {there} row groups (one at least), found {next}"
            )));
        };
        guarded(&self.file.path, || writer.finish())?;
        Ok(self.made.take())
    }

    /// Where the bytes of a column lie.
    fn range(&self, column: &ColumnChunkMetaData, is_new: bool) -> Result<Range<u64>> {
        let (start, length) = guarded(&self.file.path, || Ok(column.byte_range()))?;
        let end = start.checked_add(length);
        end.filter(|end| is_new || *end <= self.file.size())
            .map(|end| start..end)
            .ok_or_else(|| DeltaError::corrupt(&self.file.path, format!("a column of {length} bytes at {start}")))
    }
}

fn entries(metadata: &ParquetMetaData) -> impl Iterator<Item = &KeyValue> {
    metadata.file_metadata().key_value_metadata().into_iter().flatten()
}

/// The leaves of the copy: those of the old columns in their order, or of the new ones of the same name; then the other new ones.
fn leaves(old: &SchemaDescriptor, new: &SchemaDescriptor) -> Vec<Leaf> {
    let below = |schema: &SchemaDescriptor, root: usize, is_new: bool| -> Vec<Leaf> {
        let all = 0..schema.num_columns();
        let mine = all.filter(|index| schema.get_column_root_idx(*index) == root);
        mine.map(|index| Leaf { is_new, index }).collect()
    };
    let roots = columns(old, new);
    roots
        .into_iter()
        .flat_map(|root| below(if root.is_new { new } else { old }, root.index, root.is_new))
        .collect()
}

/// The columns of the copy.
fn columns(old: &SchemaDescriptor, new: &SchemaDescriptor) -> Vec<Leaf> {
    let [olds, news] = [old, new].map(|schema| schema.root_schema().get_fields());
    let mut found = Vec::new();
    for (index, field) in olds.iter().enumerate() {
        let replaced = news.iter().position(|new| new.name() == field.name());
        found.push(replaced.map_or(Leaf { is_new: false, index }, |index| Leaf { is_new: true, index }));
    }
    for (index, field) in news.iter().enumerate() {
        if !olds.iter().any(|old| old.name() == field.name()) {
            found.push(Leaf { is_new: true, index });
        }
    }
    found
}

fn begun(
    made: Made,
    old: &ParquetMetaData,
    new: &ParquetMetaData,
) -> parquet::errors::Result<SerializedFileWriter<Made>> {
    let [olds, news] = [old, new].map(|metadata| metadata.file_metadata().schema_descr());
    let fields = columns(olds, news).into_iter().filter_map(|column| {
        let schema = if column.is_new { news } else { olds };
        schema.root_schema().get_fields().get(column.index).cloned()
    });
    let root = Type::group_type_builder(olds.root_schema().name())
        .with_fields(fields.collect())
        .build()?;
    let kept: Vec<KeyValue> = entries(old)
        .filter(|entry| !OF_TYPES.contains(&entry.key.as_str()))
        .cloned()
        .collect();
    let properties = WriterProperties::builder()
        .set_created_by(concat!("esker ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata((!kept.is_empty()).then_some(kept))
        .build();
    SerializedFileWriter::new(made, Arc::new(root), Arc::new(properties))
}
