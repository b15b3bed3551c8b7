//! The body for fuzzing files: any bytes end in rows or in an error.
//!
//! `cargo test` replays `fuzz/corpus/open_and_read` and seeded mutations of it; `cargo fuzz` calls the same function, see `fuzz/README.md`.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use bytes::Bytes;

use crate::error::{FileError, Result};
use crate::inspect::inspect;
use crate::reader::FileReader;
use crate::schema::{BlobView, Field};

/// The most rows that are read at a time: a valid file may declare far more than a test should hold.
const ROWS: u64 = 5000;

/// The outcome of a file.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Why it could not be opened, or not be read.
    pub errors: Vec<FileError>,
    /// Rows that it declares.
    pub num_rows: u64,
    /// Bytes of all arrays that were read.
    pub bytes: usize,
}

/// Opens a file and reads its rows, its metadata and its blobs' locations in every way.
///
/// Panics if a read returns invalid arrays; all other results are in the outcome.
pub fn open_and_read(file: Bytes) -> Outcome {
    let mut outcome = Outcome::default();
    let run = async {
        let store = Arc::new(esker_store::memory::private()?);
        esker_store::Store::put(store.as_ref(), "a.lance", file).await?;
        let reader = FileReader::open(store, "a.lance").await?;
        outcome.num_rows = reader.num_rows();
        read_all(&reader, &mut outcome).await;
        Ok::<_, FileError>(())
    };
    let error = esker_store::block_on(run).err();
    outcome.errors.extend(error);
    outcome
}

async fn read_all(reader: &FileReader, outcome: &mut Outcome) {
    let num_rows = reader.num_rows();
    let first = num_rows.min(ROWS);
    // The beginning, then single rows, neighbours and the end.
    let some: Vec<Range<u64>> = [
        0..1,
        2..4,
        num_rows / 2..num_rows / 2 + 1,
        num_rows.saturating_sub(2)..num_rows,
    ]
    .into_iter()
    .scan(0, |previous, range| {
        let start = range.start.max(*previous).min(num_rows);
        *previous = range.end.max(start).min(num_rows);
        Some(start..*previous)
    })
    .collect();
    let fields = reader.schema().fields.clone();
    for field in &fields {
        let _ = keep(outcome, read(reader, std::slice::from_ref(field), &[0..first]).await);
        let _ = keep(outcome, read(reader, std::slice::from_ref(field), &some).await);
        if let Some(kind) = field.blob_kind() {
            let located = field.with_blob_view(BlobView::Located);
            let read = read(reader, std::slice::from_ref(&located), &[0..first]).await;
            if let Some(batch) = keep(outcome, read) {
                let places = batch.columns().iter().map(|column| reader.locate_blobs(kind, column));
                outcome.errors.extend(places.filter_map(Result::err));
            }
        }
    }
    let _ = keep(outcome, read(reader, &fields, &[0..first]).await);
    outcome.errors.extend(inspect(reader).err());
    outcome.errors.extend(reader.statistics().await.err());
    if let Some(container) = reader.container() {
        for index in 0..container.global_buffers().len().min(16) {
            outcome.errors.extend(reader.read_global_buffer(index).await.err());
        }
    }
}

async fn read(reader: &FileReader, fields: &[Field], rows: &[Range<u64>]) -> Result<RecordBatch> {
    let projection = reader.project(fields, None)?;
    let _ = reader.group_bounds(&projection).await?;
    reader.read(&projection, rows).await
}

/// Notes an error; checks and counts a batch.
fn keep(outcome: &mut Outcome, read: Result<RecordBatch>) -> Option<RecordBatch> {
    match read {
        Ok(batch) => {
            for column in batch.columns() {
                let valid = column.to_data().validate_full();
                assert!(valid.is_ok(), "an array that is not valid came out: {valid:?}");
                outcome.bytes = outcome.bytes.saturating_add(column.get_array_memory_size());
            }
            Some(batch)
        }
        Err(error) => {
            outcome.errors.push(error);
            None
        }
    }
}
