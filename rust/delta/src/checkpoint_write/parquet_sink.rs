//! Writes one Parquet file of a checkpoint: a column for each kind of action, exactly one of which is set in a row. A few row groups are
//! encoded concurrently and written as soon as they are finished.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex};

use arrow_array::{new_null_array, Array, ArrayRef};
use arrow_schema::{Fields, Schema, SchemaRef};
use bytes::Bytes;
use esker_store::{ObjectWriter, StoreRef};
use parquet::arrow::arrow_writer::{compute_leaves, ArrowColumnChunk, ArrowRowGroupWriterFactory, ArrowWriterOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use tokio::task::JoinHandle;

use super::action_line::FileKind;
use super::fit::{Fitter, Piece};
use crate::error::{DeltaError, Result};

/// The target rows of a row group, to which the rest of a piece may be added. The first groups are smaller, so that all tasks start early.
const GROUP_ROWS: usize = 32 << 10;
const FIRST_ROWS: usize = 8 << 10;
/// How many row groups are smaller.
const FIRST_GROUPS: usize = 4;
/// Row groups that are encoded concurrently.
const PARALLEL: usize = 2;

/// Finished bytes that were not written to the store yet.
#[derive(Debug, Clone, Default)]
struct Done(Arc<Mutex<Vec<u8>>>);

impl Write for Done {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Done {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        // After a panic of a writer the buffer is still valid.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn take(&self) -> Bytes {
        std::mem::take(&mut *self.lock()).into()
    }
}

/// A file that is being written.
pub(crate) struct ParquetSink {
    fitter: Arc<Fitter>,
    columns: Fields,
    factory: Arc<ArrowRowGroupWriterFactory>,
    file: SerializedFileWriter<Done>,
    done: Done,
    out: Box<dyn ObjectWriter>,
    pending: Vec<Piece>,
    pending_rows: usize,
    encoding: VecDeque<JoinHandle<Result<Vec<ArrowColumnChunk>>>>,
    groups: usize,
    /// Actions written so far.
    pub(crate) rows: u64,
    /// Adds among them.
    pub(crate) adds: u64,
}

impl ParquetSink {
    /// Opens a file with some of the actions' columns.
    pub(crate) async fn open(store: &StoreRef, path: &str, fitter: &Arc<Fitter>, actions: &[&str]) -> Result<Self> {
        let columns: Fields = (fitter.types().0.iter())
            .filter(|field| actions.contains(&field.name().as_str()))
            .cloned()
            .collect();
        let schema: SchemaRef = Arc::new(Schema::new(columns.clone()));
        let done = Done::default();
        let writer = ArrowWriter::try_new_with_options(done.clone(), schema, options()).map_err(unwritten)?;
        let (file, factory) = writer.into_serialized_writer().map_err(unwritten)?;
        Ok(Self {
            fitter: fitter.clone(),
            columns,
            factory: Arc::new(factory),
            file,
            done,
            out: store.writer(path).await?,
            pending: Vec::new(),
            pending_rows: 0,
            encoding: VecDeque::new(),
            groups: 0,
            rows: 0,
            adds: 0,
        })
    }

    /// Adds a piece.
    pub(crate) async fn push(&mut self, piece: Piece) -> Result<()> {
        if piece.live == 0 {
            return Ok(());
        }
        self.rows += piece.live as u64;
        if piece.kind() == Some(FileKind::Add) {
            self.adds += piece.live as u64;
        }
        self.pending_rows += piece.live;
        self.pending.push(piece);
        let wanted = if self.groups < FIRST_GROUPS {
            FIRST_ROWS
        } else {
            GROUP_ROWS
        };
        if self.pending_rows >= wanted {
            self.encode();
        }
        while self.encoding.len() > PARALLEL {
            self.append().await?;
        }
        Ok(())
    }

    fn encode(&mut self) {
        let pieces = std::mem::take(&mut self.pending);
        self.pending_rows = 0;
        let (fitter, factory, columns, group) = (
            self.fitter.clone(),
            self.factory.clone(),
            self.columns.clone(),
            self.groups,
        );
        self.groups += 1;
        self.encoding.push_back(tokio::task::spawn_blocking(move || {
            encoded(&fitter, &factory, &columns, group, pieces)
        }));
    }

    /// Appends the oldest row group that is being encoded.
    async fn append(&mut self) -> Result<()> {
        let Some(task) = self.encoding.pop_front() else {
            return Ok(());
        };
        let chunks = task.await.map_err(|error| DeltaError::invalid(error.to_string()))??;
        let mut group = self.file.next_row_group().map_err(unwritten)?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut group).map_err(unwritten)?;
        }
        group.close().map_err(unwritten)?;
        self.send().await
    }

    async fn send(&mut self) -> Result<()> {
        let bytes = self.done.take();
        if !bytes.is_empty() {
            self.out.write(bytes).await?;
        }
        Ok(())
    }

    /// Makes the file visible; returns its size in bytes.
    pub(crate) async fn finish(mut self) -> Result<u64> {
        match self.close().await {
            Ok(()) => Ok(self.out.finish().await?),
            Err(error) => {
                // The first error is reported, not that of the abort.
                let _ = self.out.abort().await;
                Err(error)
            }
        }
    }

    async fn close(&mut self) -> Result<()> {
        if !self.pending.is_empty() {
            self.encode();
        }
        while !self.encoding.is_empty() {
            self.append().await?;
        }
        self.file.finish().map_err(unwritten)?;
        self.send().await
    }

    /// Abandons the file and leaves nothing behind.
    pub(crate) async fn abort(mut self) {
        for task in self.encoding.drain(..) {
            task.abort();
        }
        // An invisible rest does no harm, so errors are ignored.
        let _ = self.out.abort().await;
    }
}

fn options() -> ArrowWriterOptions {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    // The values are distinct: a dictionary would be filled and then abandoned.
    for column in ["add.path", "add.stats", "remove.path"] {
        let path = ColumnPath::new(column.split('.').map(str::to_owned).collect());
        properties = properties.set_column_dictionary_enabled(path, false);
    }
    ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(true)
        .with_schema_root("spark_schema".to_owned())
}

fn encoded(
    fitter: &Fitter,
    factory: &ArrowRowGroupWriterFactory,
    columns: &Fields,
    group: usize,
    pieces: Vec<Piece>,
) -> Result<Vec<ArrowColumnChunk>> {
    let mut writers = factory.create_column_writers(group).map_err(unwritten)?;
    for piece in pieces {
        let (name, actions) = fitter.fit(&piece)?;
        drop(piece);
        let rows = actions.len();
        let actions: ArrayRef = Arc::new(actions);
        let mut leaves = writers.iter_mut();
        for field in columns {
            let column = if field.name() == name {
                actions.clone()
            } else {
                new_null_array(field.data_type(), rows)
            };
            for leaf in compute_leaves(field, &column).map_err(unwritten)? {
                let writer = leaves.next();
                let writer = writer.ok_or_else(|| DeltaError::invalid("expected a writer for each column"))?;
                writer.write(&leaf).map_err(unwritten)?;
            }
        }
    }
    writers
        .into_iter()
        .map(|writer| writer.close().map_err(unwritten))
        .collect()
}

fn unwritten(error: ParquetError) -> DeltaError {
    DeltaError::invalid(format!("no checkpoint was written: {error}"))
}
