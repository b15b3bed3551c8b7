//! Units of reading: what is read at a time, and what comes of it.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use esker_file::column_writer::ValuesMemory;
use esker_file::raw_page::RawPage;
use esker_file::FileReader;

use crate::error::{Result, TableError};
use crate::read::FragmentProjection;
use crate::zones::ZoneMap;

/// What a column of a batch is for.
#[derive(Debug, Clone)]
pub(super) enum Output {
    /// It is the part of this number.
    Part(usize),
    /// It is a whole top-level field, with these parts in it.
    Field(Vec<usize>),
}

/// What a file's zone map says of a page.
#[derive(Debug, Clone)]
pub(super) struct PageZones {
    pub map: Arc<ZoneMap>,
    /// The rows of the page in the file.
    pub rows: Range<u64>,
    /// About the bytes of its values.
    pub bytes: u64,
}

/// Something to read.
pub(super) enum Unit {
    /// A page as it is.
    Page {
        part: usize,
        reader: FileReader,
        column: usize,
        page: usize,
        bytes: u64,
        zones: Option<PageZones>,
    },
    /// Rows of some columns.
    Rows {
        columns: Arc<FragmentProjection>,
        outputs: Arc<[Output]>,
        rows: Vec<Range<u64>>,
        /// The most bytes in memory of what is read of other rows with them.
        most_bytes: usize,
    },
    /// Where the blobs of some rows lie.
    Blobs {
        part: usize,
        columns: Arc<FragmentProjection>,
        rows: Vec<Range<u64>>,
    },
}

/// What rows were read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ranges {
    One,
    Several,
    /// Rows of files before version 2.1, whose values may be handed out as they lie.
    Raw,
}

impl Ranges {
    /// Whose memory a column is in that was read so: one range of values that lie by themselves in the file is a part of the read.
    pub fn memory_of(self, column: &ArrayRef) -> ValuesMemory {
        fn lies_apart(data_type: &DataType) -> bool {
            match data_type {
                DataType::FixedSizeBinary(_) | DataType::FixedSizeList(_, _) => true,
                DataType::Struct(fields) => fields.iter().any(|field| lies_apart(field.data_type())),
                DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => {
                    lies_apart(field.data_type())
                }
                _ => false,
            }
        }
        match self {
            Ranges::Several => ValuesMemory::Own,
            Ranges::One if !lies_apart(column.data_type()) => ValuesMemory::Own,
            Ranges::One | Ranges::Raw => ValuesMemory::Shared,
        }
    }
}

/// What was read.
pub(super) enum Piece {
    /// A page as it is, and what is known of its values.
    Page(usize, RawPage, Option<PageZones>),
    Batch(RecordBatch, Arc<[Output]>, Ranges),
    /// The places of blobs, and the file that they count from.
    Blobs(usize, ArrayRef, Option<FileReader>),
}

impl Unit {
    /// The bytes that it takes in memory, by an estimate; those of rows are as many as a unit has.
    pub fn bytes(&self, unit_bytes: u64) -> u64 {
        match self {
            Unit::Page { bytes, .. } => *bytes,
            // Short runs are read with what is between them.
            Unit::Rows { rows, most_bytes, .. } if rows.len() > 1 => *most_bytes as u64,
            Unit::Rows { .. } | Unit::Blobs { .. } => unit_bytes,
        }
    }

    /// Whether it is a page as it is.
    pub fn is_page(&self) -> bool {
        matches!(self, Unit::Page { .. })
    }

    pub async fn read(self) -> Result<Piece> {
        match self {
            Unit::Page {
                part,
                reader,
                column,
                page,
                zones,
                ..
            } => Ok(Piece::Page(part, reader.read_page(column, page).await?, zones)),
            Unit::Rows {
                columns,
                outputs,
                rows,
                most_bytes,
            } => {
                let ranges = match rows.len() {
                    _ if !columns.is_decoded() => Ranges::Raw,
                    0 | 1 => Ranges::One,
                    _ => Ranges::Several,
                };
                Ok(Piece::Batch(
                    columns.read_covering(&rows, most_bytes).await?,
                    outputs,
                    ranges,
                ))
            }
            Unit::Blobs { part, columns, rows } => {
                let batch = columns.read(&rows).await?;
                let located = batch.columns().first().cloned();
                let located = located.ok_or_else(|| TableError::invalid("expected a column of blobs, found none"))?;
                Ok(Piece::Blobs(part, located, columns.file_of(0).cloned()))
            }
        }
    }
}
