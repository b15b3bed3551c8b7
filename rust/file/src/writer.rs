//! Writes one data file of any version from batches.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use esker_store::store::StoreRef;

use crate::error::{FileError, Result};
use crate::goal::Goal;
use crate::paged_writer::{PagedWriter, TrailingBuffer};
use crate::required::RequiredFields;
use crate::schema::Schema;
use crate::v0_1::dictionary::encode::DictionaryWriters;
use crate::v0_1::write::GroupWriter;
use crate::version::FileVersion;
use crate::{blob, v0_1, v2_0, v2_1};

/// How a file is written.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// The version of the file format.
    pub version: FileVersion,
    /// How small the file is to be.
    pub goal: Goal,
    /// The target size of a page in bytes.
    pub page_bytes: u64,
    /// The most bytes of buffered values, over all columns.
    pub memory_limit: u64,
    /// Pages encoded at a time.
    pub threads: usize,
    /// Whether nobody changes the memory of batches before the file is finished. Else all that waits for its page to fill is copied.
    pub memory_is_lent: bool,
    /// Whether nothing names the file before it is finished, and nobody looks at it if that never happens.
    pub staging: bool,
    /// How blobs that are given by their URI are stored.
    pub external_blobs: ExternalBlobs,
    /// Whether blob columns may say where their bytes lie, beside the file or elsewhere, instead of bringing them.
    pub prepared_blobs: bool,
    /// Rows of a group of a 0.1 file.
    pub rows_per_group: usize,
    /// Whether nulls that a 0.1 file cannot represent are written as the values that readers will see, instead of being refused.
    pub allow_null_loss: bool,
    /// The dictionaries that the files of a table of version 0.1 share.
    pub dictionaries: DictionaryWriters,
}

/// How a write stores blobs that are given by their URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExternalBlobs {
    /// It fails: what lies outside the table is not kept with it.
    #[default]
    Refuse,
    /// It leaves them where they are.
    Reference,
    /// It reads them and writes them like any other.
    Ingest,
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions {
            version: FileVersion::V2_0,
            goal: Goal::default(),
            page_bytes: 8 * 1024 * 1024,
            memory_limit: 256 * 1024 * 1024,
            threads: esker_store::cores(),
            memory_is_lent: false,
            staging: false,
            external_blobs: ExternalBlobs::Refuse,
            prepared_blobs: false,
            rows_per_group: 1024,
            allow_null_loss: false,
            dictionaries: DictionaryWriters::default(),
        }
    }
}

/// What was written.
#[derive(Debug, Clone)]
pub struct FileSummary {
    /// Rows in the file.
    pub num_rows: u64,
    /// The file's size in bytes.
    pub size: u64,
    /// Field ids, parents before their children, and the column of each; none (-1) where a field shares its parent's column.
    pub columns: Vec<(i32, i32)>,
    /// The version of the file format.
    pub version: FileVersion,
    /// The files beside it that hold some of its blobs.
    pub sidecars: Vec<String>,
}

/// A data file that is being written.
pub struct FileWriter {
    arrow: SchemaRef,
    required: RequiredFields,
    out: Out,
}

enum Out {
    Paged(Box<PagedWriter>),
    Groups(Box<GroupWriter>),
}

/// Refuses what the version cannot hold, before any byte is written.
pub fn check_schema(schema: &Schema, version: FileVersion) -> Result<()> {
    check_columns(schema, version, false)
}

fn check_columns(schema: &Schema, version: FileVersion, prepared_blobs: bool) -> Result<()> {
    blob::check::check_schema(schema, version, prepared_blobs)?;
    match version {
        FileVersion::V0_1 => v0_1::check::check_schema(schema),
        FileVersion::V2_0 => v2_0::check::check_schema(schema),
        FileVersion::V2_1 | FileVersion::V2_2 => v2_1::check::check_schema(schema, version),
    }
}

impl FileWriter {
    /// Starts the file at `path`. Nothing is visible there before [`FileWriter::finish`].
    pub async fn create(store: &StoreRef, path: &str, schema: &Schema, options: WriteOptions) -> Result<FileWriter> {
        check_columns(schema, options.version, options.prepared_blobs)?;
        let arrow = std::sync::Arc::new(schema.to_arrow()?);
        let out = match options.version {
            FileVersion::V0_1 => Out::Groups(Box::new(GroupWriter::create(store, path, schema, options).await?)),
            _ => Out::Paged(Box::new(PagedWriter::create(store, path, schema, options).await?)),
        };
        let required = RequiredFields::of(&arrow);
        Ok(FileWriter { arrow, required, out })
    }

    /// Writes a batch, whose columns are the schema's, in order.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_columns() != self.arrow.fields().len() {
            return Err(FileError::invalid(format!(
                "expected {} columns, found {}",
                self.arrow.fields().len(),
                batch.num_columns()
            )));
        }
        for (column, field) in batch.columns().iter().zip(self.arrow.fields()) {
            check_type(field.name(), field.data_type(), column)?;
        }
        let batch = self.required.settle(batch)?;
        match &mut self.out {
            Out::Paged(out) => out.write(&batch).await,
            Out::Groups(out) => out.write(&batch).await,
        }
    }

    /// Adds bytes that belong to no column and returns their number; 0 is the file's own descriptor.
    pub async fn add_global_buffer(&mut self, bytes: Bytes) -> Result<usize> {
        match &mut self.out {
            Out::Paged(out) => out.add_global_buffer(bytes).await,
            Out::Groups(_) => Err(FileError::unsupported(
                "a file of version 0.1 has no global buffers, write version 2.0 or later",
            )),
        }
    }

    /// Adds bytes behind all pages, and a key of the schema's metadata with their number. A file of version 0.1 goes without.
    pub fn add_trailing_buffer(&mut self, buffer: TrailingBuffer) {
        if let Out::Paged(out) = &mut self.out {
            out.add_trailing_buffer(buffer);
        }
    }

    /// Sets a key of the schema's metadata, until the file is finished.
    pub fn add_schema_metadata(&mut self, key: String, value: Vec<u8>) -> Result<()> {
        match &mut self.out {
            Out::Paged(out) => out.add_schema_metadata(key, value),
            Out::Groups(_) => {
                return Err(FileError::unsupported(
                    "a file of version 0.1 takes metadata with its schema only, give them there",
                ))
            }
        }
        Ok(())
    }

    /// Bytes in the file so far and bytes that wait.
    pub fn bytes_so_far(&self) -> u64 {
        match &self.out {
            Out::Paged(out) => out.bytes_so_far(),
            Out::Groups(out) => out.bytes_so_far(),
        }
    }

    /// Rows so far.
    pub fn num_rows(&self) -> u64 {
        match &self.out {
            Out::Paged(out) => out.num_rows(),
            Out::Groups(out) => out.num_rows(),
        }
    }

    /// Encodes and writes what waits, of a file that gets no more rows: what comes behind all pages may be made meanwhile.
    pub async fn end_rows(&mut self) -> Result<()> {
        match &mut self.out {
            Out::Paged(out) => out.end_rows().await,
            Out::Groups(_) => Ok(()),
        }
    }

    /// Writes the buffered values and makes the file visible.
    pub async fn finish(self) -> Result<FileSummary> {
        match self.out {
            Out::Paged(out) => out.finish().await,
            Out::Groups(out) => out.finish().await,
        }
    }

    /// Abandons the file and leaves nothing behind.
    pub async fn abort(self) -> Result<()> {
        match self.out {
            Out::Paged(out) => out.abort().await,
            Out::Groups(out) => out.abort().await,
        }
    }
}

fn check_type(name: &str, expected: &DataType, column: &ArrayRef) -> Result<()> {
    if expected.equals_datatype(column.data_type()) {
        return Ok(());
    }
    Err(FileError::invalid(format!(
        "column '{name}': expected type {expected}, found {}",
        column.data_type()
    )))
}
