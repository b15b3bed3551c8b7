//! Units of reading: what is read at a time, and what comes of it.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use esker_file::raw_page::RawPage;
use esker_file::FileReader;

use crate::error::{Result, TableError};
use crate::read::FragmentProjection;

/// What a column of a batch is for.
#[derive(Debug, Clone)]
pub(super) enum Output {
    /// It is the part of this number.
    Part(usize),
    /// It is a whole top-level field, with these parts in it.
    Field(Vec<usize>),
}

/// Something to read.
pub(super) enum Unit {
    /// A page as it is.
    Page {
        part: usize,
        reader: FileReader,
        column: usize,
        page: usize,
    },
    /// Rows of some columns.
    Rows {
        columns: Arc<FragmentProjection>,
        outputs: Arc<[Output]>,
        rows: Vec<Range<u64>>,
    },
    /// Where the blobs of some rows lie.
    Blobs {
        part: usize,
        columns: Arc<FragmentProjection>,
        rows: Vec<Range<u64>>,
    },
}

/// What was read.
pub(super) enum Piece {
    Page(usize, RawPage),
    Batch(RecordBatch, Arc<[Output]>),
    /// The places of blobs, and the file that they count from.
    Blobs(usize, ArrayRef, Option<FileReader>),
}

impl Unit {
    pub async fn read(self) -> Result<Piece> {
        match self {
            Unit::Page {
                part,
                reader,
                column,
                page,
            } => Ok(Piece::Page(part, reader.read_page(column, page).await?)),
            Unit::Rows { columns, outputs, rows } => Ok(Piece::Batch(columns.read(&rows).await?, outputs)),
            Unit::Blobs { part, columns, rows } => {
                let batch = columns.read(&rows).await?;
                let located = batch.columns().first().cloned();
                let located = located.ok_or_else(|| TableError::invalid("expected a column of blobs, found none"))?;
                Ok(Piece::Blobs(part, located, columns.file_of(0).cloned()))
            }
        }
    }
}
