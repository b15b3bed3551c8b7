//! Runs a merge: from the source's rows to an uncommitted change.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use esker_file::schema::{Field, Schema};
use esker_file::{DictionaryWriters, ExternalBlobs, FileVersion};

use super::clauses::{MergeClauses, WhenMatched};
use super::key_filter::KeyFilter;
use super::outcome::{remove, MergeOutcome};
use super::produce::{Produced, Producer};
use crate::error::{Result, TableError};
use crate::fragment::{DataFile, Fragment};
use crate::manifest::Manifest;
use crate::operation::{Update, UpdateMode};
use crate::read::TableFiles;
use crate::row_ids::{RowIdSequence, Spilling};
use crate::write::{write_fragments, WriteRequest};
use esker_merge::MergeSource;

/// How rows are merged.
#[derive(Debug, Clone)]
pub struct MergeRequest {
    /// The key: columns of the table that the source has too.
    pub on: Vec<String>,
    /// What happens to matched and unmatched rows.
    pub clauses: MergeClauses,
    /// The version of new files.
    pub version: FileVersion,
    /// Rows after which a new file is started.
    pub max_rows_per_file: u64,
    /// Bytes after which a new file is started.
    pub max_bytes_per_file: u64,
    /// Bytes for keys, pairs and rows that wait to be written, together.
    pub memory_limit: u64,
    /// The base paths that new files go to in turn; `None` is the table's own root, as is an empty list.
    pub target_bases: Vec<Option<u32>>,
    /// Set to end the merge with an error; it removes what it has staged.
    pub stop: Arc<AtomicBool>,
}

impl MergeRequest {
    /// An error if the merge is to stop.
    pub(super) fn check_stop(&self) -> Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(TableError::invalid("the merge was stopped before its end")),
            false => Ok(()),
        }
    }
}

/// Merges a source into a version of a table. Nothing is visible before the outcome is committed; on an error, staged files are removed.
pub async fn merge(
    files: &Arc<TableFiles>,
    manifest: &Arc<Manifest>,
    source: Arc<MergeSource>,
    request: &MergeRequest,
) -> Result<MergeOutcome> {
    manifest.check_readable()?;
    let schema = manifest.schema()?;
    let filter = key_filter(&schema, request)?;
    let producer = Producer::new(files, manifest, &schema, source, request, filter)?;
    let write = write_request(manifest, schema.as_ref().clone(), request)?;
    let spilling = Spilling::of(manifest.config())?;
    let rows = |receiver| {
        let schema = producer.schema().clone();
        Box::new(Rows { schema, receiver })
    };
    let (sender, receiver) = sync_channel(1);
    let updated = rows(receiver);
    // Where lineage is spilled, rows whose ids the commit decides lie in files apart from those that keep theirs.
    let (inserts, inserted) = match spilling {
        Some(_) => {
            let (sender, receiver) = sync_channel(1);
            (Some(sender), Some(rows(receiver)))
        }
        None => (None, None),
    };
    let producing = tokio::task::spawn_blocking(move || producer.run(sender, inserts));
    let mut written = write_fragments(files.store(), updated, &write).await;
    if let (Ok(first), Some(inserted)) = (&mut written, inserted) {
        match write_fragments(files.store(), inserted, &write).await {
            Ok(more) => first.extend(more),
            Err(error) => {
                remove(files, &paths_of(first)).await;
                written = Err(error);
            }
        }
    }
    let produced = producing
        .await
        .map_err(|e| TableError::task_failed("merge", &e))
        .and_then(|done| done);
    let (new_fragments, produced) = match (written, produced) {
        (Ok(written), Ok(produced)) => (written, produced),
        (Ok(written), Err(error)) => {
            remove(files, &paths_of(&written)).await;
            return Err(error);
        }
        (Err(error), _) => return Err(error),
    };
    outcome(files, manifest, new_fragments, produced, spilling).await
}

/// The rows of a source that match rows of a table, with the addresses of those as `_rowaddr`. Held in memory; nothing is written.
pub async fn changed_rows(
    files: &Arc<TableFiles>,
    manifest: &Arc<Manifest>,
    source: Arc<MergeSource>,
    request: &MergeRequest,
) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    manifest.check_readable()?;
    let schema = manifest.schema()?;
    let producer = Producer::new(files, manifest, &schema, source, request, None)?.for_changes(&schema)?;
    let schema = producer.schema().clone();
    let (sender, receiver) = sync_channel(1);
    let producing = tokio::task::spawn_blocking(move || producer.run(sender, None));
    let taken = tokio::task::spawn_blocking(move || receiver.into_iter().collect());
    producing.await.map_err(|e| TableError::task_failed("merge", &e))??;
    Ok((schema, taken.await.map_err(|e| TableError::task_failed("merge", &e))?))
}

async fn outcome(
    files: &Arc<TableFiles>,
    manifest: &Manifest,
    new_fragments: Vec<Fragment>,
    produced: Produced,
    spilling: Option<Spilling>,
) -> Result<MergeOutcome> {
    let mut paths = paths_of(&new_fragments);
    let mut new_fragments = with_kept_ids(new_fragments, &produced.kept_ids);
    let staged = match produced.gone.stage(files, manifest).await {
        Ok(staged) => staged,
        Err(error) => {
            remove(files, &paths).await;
            return Err(error);
        }
    };
    let deletions = staged.updated.iter();
    paths.extend(deletions.filter_map(|fragment| Some(fragment.deletion_file()?.location(fragment.id()))));
    if let Some(spilling) = spilling {
        let touched = staged.updated.iter().map(Fragment::id);
        let from = touched.chain(staged.removed.iter().copied()).collect();
        match spilling.moved(files.store(), manifest, &from, new_fragments).await {
            Ok(spilled) => {
                new_fragments = spilled.fragments;
                paths.extend(spilled.files);
            }
            Err(error) => {
                remove(files, &paths).await;
                return Err(error);
            }
        }
    }
    let sizes = new_fragments.iter().flat_map(Fragment::files);
    Ok(MergeOutcome {
        bytes_written: sizes.filter_map(|file| file.file_size_bytes).sum(),
        stats: produced.stats,
        files: paths,
        rows_scanned: produced.rows_scanned,
        partitions: produced.partitions,
        spilled_bytes: produced.spilled_bytes,
        update: Update {
            removed_fragment_ids: staged.removed,
            updated_fragments: staged.updated,
            new_fragments,
            fields_for_preserving_frag_bitmap: manifest
                .schema_fields()
                .iter()
                .filter_map(|field| u32::try_from(field.id).ok())
                .collect(),
            update_mode: UpdateMode::RewriteRows,
            inserted_rows: produced.filter.map(|filter| filter.encode()).unwrap_or_default(),
            ..Update::default()
        },
    })
}

/// Stamps the ids of moved rows on the fragments: those rows were written first, and the commit gives ids to the rows after them.
fn with_kept_ids(fragments: Vec<Fragment>, ids: &[u64]) -> Vec<Fragment> {
    let mut rest = ids;
    let stamped = fragments.into_iter().map(|fragment| {
        let rows = usize::try_from(fragment.physical_rows().unwrap_or(0)).unwrap_or(usize::MAX);
        let (here, later) = rest.split_at(rows.min(rest.len()));
        rest = later;
        if here.is_empty() {
            return fragment;
        }
        fragment.with_row_ids(&RowIdSequence::from_ids(here))
    });
    stamped.collect()
}

/// An empty filter for the inserted keys. If the key is the table's declared primary key, it is a Bloom filter, which pylance compares.
fn key_filter(schema: &Schema, request: &MergeRequest) -> Result<Option<KeyFilter>> {
    let field = |name: &String| schema.field(name).map(|field| field.id);
    let ids: Option<Vec<i32>> = request.on.iter().map(field).collect();
    let ids =
        ids.ok_or_else(|| TableError::invalid(format!("expected key columns of the table, found {:?}", request.on)))?;
    let declared = schema.primary_key();
    let is_declared = ids == declared.iter().map(|field| field.id).collect::<Vec<_>>();
    let changes = request.clauses.insert || request.clauses.updates();
    let deletes = matches!(request.clauses.when_matched, WhenMatched::Delete) && !request.clauses.insert;
    Ok((changes && !deletes).then(|| KeyFilter::new(ids, is_declared)))
}

fn write_request(manifest: &Manifest, schema: Schema, request: &MergeRequest) -> Result<WriteRequest> {
    let dictionaries = manifest.dictionaries()?;
    Ok(WriteRequest {
        schema,
        version: request.version,
        goal: manifest.goal()?,
        max_rows_per_file: request.max_rows_per_file,
        max_bytes_per_file: request.max_bytes_per_file,
        memory_limit: (request.memory_limit / 2).max(1),
        external_blobs: ExternalBlobs::Refuse,
        max_rows_per_group: 1024,
        allow_null_loss: false,
        dictionaries: DictionaryWriters::of_table(&dictionaries)?,
        target_bases: request.target_bases.clone(),
        stop: request.stop.clone(),
    })
}

fn paths_of(fragments: &[Fragment]) -> Vec<String> {
    fragments
        .iter()
        .flat_map(Fragment::files)
        .map(DataFile::location)
        .collect()
}

/// A reader of the rows to write, as they are produced.
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

/// Sends rows to write; false once the receiver is gone.
pub(super) fn send(out: &SyncSender<RecordBatch>, batch: RecordBatch) -> bool {
    out.send(batch).is_ok()
}

/// The indices of the columns of these names.
pub(super) fn places(schema: &arrow_schema::Schema, names: &[String]) -> Result<Vec<usize>> {
    let place = |name: &String| {
        schema.index_of(name).map_err(|_| {
            let found: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            TableError::UnknownColumn {
                column: name.clone(),
                message: format!("expected column '{name}' in the source, found {}", found.join(", ")),
            }
        })
    };
    names.iter().map(place).collect()
}

/// Refuses key columns of different types, which would never be equal.
pub(super) fn check_type(found: &arrow_schema::Field, expected: &DataType) -> Result<()> {
    if expected.equals_datatype(found.data_type()) {
        return Ok(());
    }
    Err(TableError::SchemaMismatch {
        column: found.name().clone(),
        expected: expected.to_string(),
        found: found.data_type().to_string(),
    })
}

/// The key column of that name. Blobs are refused, as a scan returns their descriptions and not their bytes.
pub(super) fn key_field<'a>(schema: &'a Schema, name: &str) -> Result<&'a Field> {
    let field = schema.field(name).ok_or_else(|| TableError::UnknownColumn {
        column: name.to_owned(),
        message: format!("expected key column '{name}' among the table's columns, it has none of that name"),
    })?;
    if field.has_blobs() {
        return Err(TableError::unsupported(format!(
            "column '{name}' holds blobs, it cannot be a key of merge_insert"
        )));
    }
    Ok(field)
}
