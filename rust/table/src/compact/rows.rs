//! Writes files that take whole rows: those of version 0.1.

use std::sync::mpsc::{sync_channel, Receiver};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use futures::TryStreamExt;

use super::columns::pieces;
use super::cut::Slice;
use super::planner::Sources;
use super::request::RewriteRequest;
use super::units::Piece;
use crate::error::{Result, TableError};
use crate::manifest::Manifest;
use crate::write::{discard, stage_fragments, StagedFragment};

/// Writes rows in batches of bounded size. On an error, nothing stays behind.
pub(super) async fn write_rows(
    sources: &Arc<Sources>,
    manifest: &Manifest,
    request: &RewriteRequest,
    slices: Vec<Slice>,
) -> Result<Vec<StagedFragment>> {
    let write = request.batches(manifest)?;
    let schema = Arc::new(write.schema.to_arrow()?);
    let (sender, receiver) = sync_channel(1);
    let mut pieces = pieces(sources, request, 0..sources.parts.len(), slices);
    let stopping = request.clone();
    let reading: tokio::task::JoinHandle<Result<()>> = tokio::spawn(async move {
        while let Some(piece) = pieces.try_next().await? {
            stopping.check_stop()?;
            let Piece::Batch(batch, _, _) = piece else { continue };
            if tokio::task::block_in_place(|| sender.send(batch).is_err()) {
                // The writer failed, and has the error.
                return Ok(());
            }
        }
        Ok(())
    });
    let store = sources.files.store();
    let staged = stage_fragments(store, Box::new(Rows { schema, receiver }), &write).await;
    let read = reading
        .await
        .map_err(|error| TableError::task_failed("rewrite", &error));
    match (staged, read.and_then(|read| read)) {
        (Ok(staged), Ok(())) => Ok(staged),
        (Ok(staged), Err(error)) => {
            discard(store, &staged).await;
            Err(error)
        }
        (Err(error), _) => Err(error),
    }
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
