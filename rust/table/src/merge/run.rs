//! A merge from its rows to a change that can be committed.

use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use esker_file::schema::{Field, Schema};
use esker_file::{DictionaryWriters, ExternalBlobs, FileVersion};

use super::clauses::{MergeClauses, WhenMatched};
use super::key_filter::KeyFilter;
use super::outcome::MergeOutcome;
use super::produce::{Produced, Producer};
use super::source::MergeSource;
use crate::error::{Result, TableError};
use crate::fragment::{DataFile, Fragment};
use crate::manifest::Manifest;
use crate::operation::{Update, UpdateMode};
use crate::read::TableFiles;
use crate::row_ids::RowIdSequence;
use crate::write::{write_fragments, WriteRequest};

/// How rows are merged.
#[derive(Debug, Clone)]
pub struct MergeRequest {
    /// The key: columns of the table that the source has too.
    pub on: Vec<String>,
    /// What happens to which rows.
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
}

/// Merges a source into a version of a table. Nothing is visible before the outcome is committed; on an error no file stays behind.
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
    let write = write_request(manifest, schema, request)?;
    let (sender, receiver) = sync_channel(1);
    let reader = Box::new(Rows {
        schema: producer.schema().clone(),
        receiver,
    });
    let producing = tokio::task::spawn_blocking(move || producer.run(&sender));
    let written = write_fragments(files.store(), reader, &write).await;
    let produced = producing
        .await
        .map_err(|e| TableError::task_failed("merge", &e))
        .and_then(|done| done);
    let (new_fragments, produced) = match (written, produced) {
        (Ok(written), Ok(produced)) => (written, produced),
        (Ok(written), Err(error)) => {
            discard(files, &paths_of(&written)).await;
            return Err(error);
        }
        (Err(error), _) => return Err(error),
    };
    outcome(files, manifest, new_fragments, produced).await
}

/// The rows of a source that change rows of a table, with the addresses of those as `_rowaddr`; nothing is written. They are held in memory.
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
    let producing = tokio::task::spawn_blocking(move || producer.run(&sender));
    let taken = tokio::task::spawn_blocking(move || receiver.into_iter().collect());
    producing.await.map_err(|e| TableError::task_failed("merge", &e))??;
    Ok((schema, taken.await.map_err(|e| TableError::task_failed("merge", &e))?))
}

async fn outcome(
    files: &Arc<TableFiles>,
    manifest: &Manifest,
    new_fragments: Vec<Fragment>,
    produced: Produced,
) -> Result<MergeOutcome> {
    let mut paths = paths_of(&new_fragments);
    let staged = match produced.gone.stage(files, manifest).await {
        Ok(staged) => staged,
        Err(error) => {
            discard(files, &paths).await;
            return Err(error);
        }
    };
    let deletions = staged.updated.iter();
    paths.extend(deletions.filter_map(|fragment| Some(fragment.deletion_file()?.location(fragment.id()))));
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
            new_fragments: with_kept_ids(new_fragments, &produced.kept_ids),
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

/// Rows that moved keep their ids: they were written first, and the commit gives ids to those behind them.
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

/// What to say of inserted keys. Where the key is the table's declared one, it is said in pylance's form, as pylance says it.
fn key_filter(schema: &Schema, request: &MergeRequest) -> Result<Option<KeyFilter>> {
    let field = |name: &String| schema.field(name).map(|field| field.id);
    let ids: Option<Vec<i32>> = request.on.iter().map(field).collect();
    let ids =
        ids.ok_or_else(|| TableError::invalid(format!("expected key columns of the table, found {:?}", request.on)))?;
    let declared = schema.fields.iter().filter(|field| field.unenforced_primary_key);
    let is_declared = ids == declared.map(|field| field.id).collect::<Vec<_>>();
    let changes = request.clauses.insert || request.clauses.updates();
    let deletes = matches!(request.clauses.when_matched, WhenMatched::Delete) && !request.clauses.insert;
    Ok((changes && !deletes).then(|| KeyFilter::new(ids, is_declared)))
}

fn write_request(manifest: &Manifest, schema: Schema, request: &MergeRequest) -> Result<WriteRequest> {
    let dictionaries = manifest.dictionaries()?;
    Ok(WriteRequest {
        schema,
        version: request.version,
        max_rows_per_file: request.max_rows_per_file,
        max_bytes_per_file: request.max_bytes_per_file,
        memory_limit: (request.memory_limit / 2).max(1),
        external_blobs: ExternalBlobs::Refuse,
        max_rows_per_group: 1024,
        allow_null_loss: false,
        dictionaries: DictionaryWriters::of_table(&dictionaries)?,
        target_bases: request.target_bases.clone(),
    })
}

fn paths_of(fragments: &[Fragment]) -> Vec<String> {
    fragments
        .iter()
        .flat_map(Fragment::files)
        .map(DataFile::location)
        .collect()
}

/// Removes files that no version will have.
async fn discard(files: &TableFiles, paths: &[String]) {
    for path in paths {
        // The error that led here is the one to report; what cannot be removed is left to clean-up.
        let _ = files.store().delete(path).await;
    }
}

/// The rows to write, as they come.
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

/// Where rows to write go; false once nobody takes them any more.
pub(super) fn send(out: &SyncSender<RecordBatch>, batch: RecordBatch) -> bool {
    out.send(batch).is_ok()
}

/// The columns of these names.
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

/// Keys of other types are never equal, whatever they look like.
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

/// A key column may hold anything but blobs, of which a scan tells where they lie and not what they are.
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
