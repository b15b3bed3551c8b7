//! One file of a checkpoint: the whole checkpoint, a part or a sidecar, in Parquet or in JSON.
//!
//! Spec: "Checkpoints" and "Sidecar Files". Columns are found by name; missing ones are null.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, StructArray};
use esker_store::StoreRef;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::de::DeserializeOwned;

use crate::actions::{DeletionVectorDescriptor, DomainMetadata, Metadata, Protocol, Sidecar, Transaction};
use crate::arrays::{action, integers, json, texts, TextMap};
use crate::chunk::{ChunkBuilder, FileChunk, Source};
use crate::commit::parse_commit;
use crate::error::{DeltaError, Result};
use crate::path::TableRoot;
use crate::sparse::ParquetFile;

/// The fields of an add that the file list needs.
const ADD: [&str; 5] = [
    "add.path",
    "add.size",
    "add.modificationTime",
    "add.partitionValues",
    "add.deletionVector",
];
/// The other actions of the table's state.
const OTHERS: [&str; 5] = ["metaData", "protocol", "txn", "domainMetadata", "sidecar"];

/// Row groups that are read concurrently from a store behind a network. Locally, one is decoded while its batches are processed.
const FAR: usize = 4;

/// The content of one file of a checkpoint.
#[derive(Debug, Default)]
pub(crate) struct CheckpointContent {
    /// The files that it was read from, sidecars included.
    pub(crate) files: Vec<String>,
    pub(crate) chunks: Vec<FileChunk>,
    pub(crate) metadata: Option<Metadata>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) transactions: Vec<Transaction>,
    pub(crate) domains: Vec<DomainMetadata>,
    pub(crate) sidecars: Vec<Sidecar>,
}

pub(crate) async fn read(store: &StoreRef, path: &str, version: u64, root: &TableRoot) -> Result<CheckpointContent> {
    if path.ends_with(".json") {
        return read_json(store, path, version, root).await;
    }
    let file = ParquetFile::open(store, path).await?;
    let mut content = CheckpointContent::default();
    let others = file.leaves(&OTHERS);
    for group in 0..file.row_groups() {
        if others.is_empty() || file.all_null(group, &others) {
            continue;
        }
        for batch in file.read(store, group, &others).await? {
            content.take_others(&batch, path)?;
        }
    }
    let adds = file.leaves(&ADD);
    if file.leaves(&["add.path"]).is_empty() {
        return Ok(content);
    }
    let groups = (0..file.row_groups()).map(|group| take_group(store, &file, group, &adds, root));
    let parallel = if store.is_far() { FAR } else { 1 };
    content.chunks = stream::iter(groups).buffered(parallel).try_collect().await?;
    Ok(content)
}

async fn take_group(
    store: &StoreRef,
    file: &ParquetFile,
    group: usize,
    leaves: &[usize],
    root: &TableRoot,
) -> Result<FileChunk> {
    // The capacity: the row count that the file claims, but at most a row per byte.
    let rows = file.rows(group).min(file.bytes(group, "add.path"));
    let mut builder = ChunkBuilder::with_capacity(rows);
    let mut batches = file.batches(store, group, leaves);
    while let Some(batch) = batches.next().await? {
        take_adds(&mut builder, &batch, &file.path, root)?;
    }
    let path = file.path.clone();
    Ok(builder.finish(Source::Parquet { path, group }))
}

async fn read_json(store: &StoreRef, path: &str, version: u64, root: &TableRoot) -> Result<CheckpointContent> {
    let bytes = store.get(path).await?;
    let actions = parse_commit(&bytes, path, version, root)?;
    if !actions.is_v2_checkpoint {
        return Err(DeltaError::corrupt(
            path,
            "expected a checkpointMetadata action in a checkpoint, found none",
        ));
    }
    let adds = actions.adds;
    Ok(CheckpointContent {
        files: Vec::new(),
        chunks: vec![adds],
        metadata: actions.metadata,
        protocol: actions.protocol,
        transactions: actions.transactions,
        domains: actions.domains,
        sidecars: actions.sidecars,
    })
}

/// The rows of a batch that are adds: those with a path.
pub(crate) fn add_rows<'a>(
    batch: &'a RecordBatch,
    path: &str,
) -> Result<Option<(&'a StructArray, arrow_array::StringArray)>> {
    let Some(add) = action(batch, "add") else {
        return Ok(None);
    };
    let paths = texts(add, "path")
        .ok_or_else(|| DeltaError::corrupt(path, "expected add.path as texts, found another type"))?;
    Ok(Some((add, paths)))
}

fn take_adds(builder: &mut ChunkBuilder, batch: &RecordBatch, path: &str, root: &TableRoot) -> Result<()> {
    let Some((add, paths)) = add_rows(batch, path)? else {
        return Ok(());
    };
    let sizes = integers(add, "size");
    let times = integers(add, "modificationTime");
    let partitions = TextMap::of(add, "partitionValues");
    let vectors = add
        .column_by_name("deletionVector")
        .and_then(|column| column.as_struct_opt());
    let number = |column: &Option<arrow_array::Int64Array>, row: usize| {
        let column = column.as_ref().filter(|column| column.is_valid(row));
        column.map_or(0, |column| column.value(row))
    };
    for row in 0..batch.num_rows() {
        if add.is_null(row) || paths.is_null(row) {
            continue;
        }
        let vector = match vectors.filter(|vectors| vectors.is_valid(row)) {
            Some(vectors) => decode::<DeletionVectorDescriptor>(vectors, row, path, "deletionVector")?,
            None => None,
        };
        builder.push(root, paths.value(row), number(&sizes, row), number(&times, row), vector)?;
        if let Some(partitions) = &partitions {
            for (name, value) in partitions.entries(row) {
                builder.partition(name, value)?;
            }
        }
    }
    Ok(())
}

impl CheckpointContent {
    fn take_others(&mut self, batch: &RecordBatch, path: &str) -> Result<()> {
        for name in OTHERS {
            let Some(array) = action(batch, name) else { continue };
            for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
                match name {
                    "metaData" => self.metadata = decode(array, row, path, name)?.or(self.metadata.take()),
                    "protocol" => self.protocol = decode(array, row, path, name)?.or(self.protocol.take()),
                    "txn" => self.transactions.extend(decode(array, row, path, name)?),
                    "domainMetadata" => self.domains.extend(decode(array, row, path, name)?),
                    _ => self.sidecars.extend(decode(array, row, path, name)?),
                }
            }
        }
        Ok(())
    }
}

/// Decodes an action from its row; `None` if all of its fields are null, as some writers fill the rows of other actions.
pub(crate) fn decode<T: DeserializeOwned>(
    array: &StructArray,
    row: usize,
    path: &str,
    name: &str,
) -> Result<Option<T>> {
    let value = json(array, row)
        .ok_or_else(|| DeltaError::corrupt(path, format!("expected {name}, found a type that it has not")))?;
    if value.as_object().is_some_and(serde_json::Map::is_empty) {
        return Ok(None);
    }
    let decoded = serde_json::from_value(value);
    decoded
        .map(Some)
        .map_err(|error| DeltaError::corrupt(path, format!("expected {name}, found: {error}")))
}
