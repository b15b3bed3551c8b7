//! Rewrites fragments: reads their live rows in order and stages new files.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use esker_file::schema::BlobView;
use esker_file::{DictionaryWriters, ExternalBlobs, FileVersion};
use futures::TryStreamExt;

use super::carried::CarriedRows;
use super::outcome::RewriteOutcome;
use crate::error::{Result, TableError};
use crate::manifest::Manifest;
use crate::read::{fragments_of, scan, ScanRequest, TableFiles};
use crate::write::{discard, stage_fragments, StagedFragment, WriteRequest};

/// How fragments are rewritten.
#[derive(Debug, Clone)]
pub struct RewriteRequest {
    /// The fragments, in the order of their rows.
    pub fragment_ids: Vec<u64>,
    /// The version of new files.
    pub version: FileVersion,
    /// Rows after which a new file is started.
    pub max_rows_per_file: u64,
    /// Bytes after which a new file is started, as far as pages allow.
    pub max_bytes_per_file: u64,
    /// Rows of a group of files of version 0.1.
    pub max_rows_per_group: usize,
    /// Bytes that may be held: rows that are read ahead and rows that wait to be written.
    pub memory_limit: u64,
    /// The base paths that new files go to in turn; `None` is the table's own root, as is an empty list.
    pub target_bases: Vec<Option<u32>>,
    /// Stops the rewrite early once it is true, with an error.
    pub stop: Arc<AtomicBool>,
}

impl RewriteRequest {
    /// An error if the rewrite is to stop.
    fn check_stop(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(TableError::invalid("the rewrite was stopped before its end"));
        }
        Ok(())
    }
}

/// Writes the live rows of fragments of a version, in order, to new files. Nothing is visible before the outcome is committed; on an error,
/// staged files are removed.
pub async fn rewrite_fragments(
    files: &Arc<TableFiles>,
    manifest: &Arc<Manifest>,
    request: &RewriteRequest,
) -> Result<RewriteOutcome> {
    manifest.check_readable()?;
    check(request)?;
    let fragments = fragments_of(manifest, Some(&request.fragment_ids))?;
    let carried = CarriedRows::read(files, manifest, &fragments).await?;
    let staged = write_rows(files, manifest, request).await?;
    Ok(outcome(staged, carried.as_ref()))
}

fn check(request: &RewriteRequest) -> Result<()> {
    if request.max_rows_per_file == 0 || request.max_bytes_per_file == 0 || request.memory_limit == 0 {
        return Err(TableError::invalid(
            "expected max_rows_per_file, max_bytes_per_file and memory_limit above 0",
        ));
    }
    let mut seen = std::collections::HashSet::new();
    match request.fragment_ids.iter().find(|id| !seen.insert(**id)) {
        Some(twice) => Err(TableError::invalid(format!(
            "expected each fragment once, found fragment {twice} twice"
        ))),
        None => Ok(()),
    }
}

fn outcome(staged: Vec<StagedFragment>, carried: Option<&CarriedRows>) -> RewriteOutcome {
    let mut out = RewriteOutcome::default();
    for StagedFragment { fragment, files } in staged {
        let rows = fragment.physical_rows().unwrap_or(0);
        let sizes = fragment.files().iter().filter_map(|file| file.file_size_bytes);
        out.bytes_written = out.bytes_written.saturating_add(sizes.sum());
        out.files.extend(files);
        out.fragments.push(match carried {
            Some(carried) => carried.stamp(fragment, out.rows),
            None => fragment,
        });
        out.rows = out.rows.saturating_add(rows);
    }
    out
}

async fn write_rows(
    files: &Arc<TableFiles>,
    manifest: &Arc<Manifest>,
    request: &RewriteRequest,
) -> Result<Vec<StagedFragment>> {
    let scanned = scan(
        files.clone(),
        manifest,
        &ScanRequest {
            fragment_ids: Some(request.fragment_ids.clone()),
            blobs: BlobView::Bytes,
            ..ScanRequest::default()
        },
    )?;
    let write = write_request(manifest, request)?;
    let (sender, receiver) = sync_channel(1);
    let schema = Arc::new(write.schema.to_arrow()?);
    let reader = Box::new(Rows { schema, receiver });
    let mut batches = scanned.batches;
    let stopping = request.clone();
    let reading: tokio::task::JoinHandle<Result<()>> = tokio::spawn(async move {
        while let Some(batch) = batches.try_next().await? {
            stopping.check_stop()?;
            if !send(&sender, batch) {
                return Ok(());
            }
        }
        Ok(())
    });
    let staged = stage_fragments(files.store(), reader, &write).await;
    let read = reading.await.map_err(|e| TableError::task_failed("compaction", &e));
    match (staged, read.and_then(|read| read)) {
        (Ok(staged), Ok(())) => Ok(staged),
        (Ok(staged), Err(error)) => {
            discard(files.store(), &staged).await;
            Err(error)
        }
        (Err(error), _) => Err(error),
    }
}

fn write_request(manifest: &Manifest, request: &RewriteRequest) -> Result<WriteRequest> {
    let dictionaries = manifest.dictionaries()?;
    Ok(WriteRequest {
        schema: manifest.schema()?,
        version: request.version,
        max_rows_per_file: request.max_rows_per_file,
        max_bytes_per_file: request.max_bytes_per_file,
        memory_limit: (request.memory_limit / 2).max(1),
        external_blobs: ExternalBlobs::Reference,
        max_rows_per_group: request.max_rows_per_group,
        allow_null_loss: false,
        dictionaries: DictionaryWriters::of_table(&dictionaries)?,
        target_bases: request.target_bases.clone(),
    })
}

/// Sends rows to write; false once the receiver is gone.
fn send(out: &SyncSender<RecordBatch>, batch: RecordBatch) -> bool {
    tokio::task::block_in_place(|| out.send(batch).is_ok())
}

/// A reader of the rows as they arrive.
struct Rows {
    schema: SchemaRef,
    receiver: Receiver<RecordBatch>,
}

impl Iterator for Rows {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.receiver.recv().ok().map(Ok)
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
