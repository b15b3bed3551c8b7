//! The source of a checkpoint: the commits after the base checkpoint, parsed in groups, and the base's files.

use std::sync::Arc;

use arrow_schema::DataType;
use bytes::Bytes;
use esker_store::StoreRef;
use futures::stream::{self, Stream, StreamExt};
use serde_json::value::RawValue;

use super::action_line::{ActionLine, FileAction, FileKind, Kind};
use super::file_rows::{vector_of, FileRows, PIECE_ROWS};
use crate::chunk::file_key;
use crate::commit::lines;
use crate::error::{DeltaError, Result};
use crate::listing::commit_path;
use crate::path::TableRoot;
use crate::snapshot::Snapshot;
use crate::sparse::ParquetFile;

/// Groups of commits that are parsed concurrently.
const PARALLEL: usize = 3;
/// The longest line, in bytes: no writer makes longer ones.
const LINE_LIMIT: usize = 1 << 30;

/// Some commits, newest first.
#[derive(Default)]
pub(crate) struct ParsedGroup {
    /// The key (path and deletion vector) of each file action, in order.
    pub(crate) keys: Vec<(FileKind, Vec<u8>)>,
    pub(crate) adds: Vec<FileRows>,
    pub(crate) removes: Vec<FileRows>,
    /// The other actions: name, JSON and commit.
    pub(crate) others: Vec<(&'static str, Box<RawValue>, String)>,
    /// The inferred types of unknown fields.
    pub(crate) shown: Vec<(FileKind, String, DataType)>,
}

/// The files of the base checkpoint.
pub(crate) enum BaseFile {
    /// JSON lines, as in commits.
    Json(String),
    Parquet(ParquetFile),
}

/// Opens the files of the base: the checkpoint that a version was replayed from.
pub(crate) async fn base_files(store: &StoreRef, snapshot: &Snapshot) -> Result<Vec<BaseFile>> {
    let mut files = Vec::new();
    for path in snapshot.base_files.iter() {
        files.push(if path.ends_with(".json") {
            BaseFile::Json(path.clone())
        } else {
            BaseFile::Parquet(ParquetFile::open(store, path).await?.with_batch_rows(PIECE_ROWS))
        });
    }
    Ok(files)
}

/// The commits after the base, newest first, and then the lines of the base.
pub(crate) fn groups<'a>(
    store: &'a StoreRef,
    snapshot: &Snapshot,
    base: &[BaseFile],
) -> impl Stream<Item = Result<ParsedGroup>> + 'a {
    let first = snapshot.checkpoint_version.map_or(0, |base| base + 1);
    let versions: Vec<u64> = (first..=snapshot.version).rev().collect();
    let size = (versions.len() / 64).clamp(1, 64);
    let mut groups: Vec<Vec<String>> = versions
        .chunks(size)
        .map(|versions| versions.iter().map(|version| commit_path(*version)).collect())
        .collect();
    groups.extend(base.iter().filter_map(|file| match file {
        BaseFile::Json(path) => Some(vec![path.clone()]),
        BaseFile::Parquet(_) => None,
    }));
    let root = snapshot.root.clone();
    stream::iter(groups)
        .map(move |paths| {
            let (store, root) = (store.clone(), root.clone());
            tokio::spawn(async move {
                let mut files = Vec::with_capacity(paths.len());
                for path in paths {
                    let bytes = store.get(&path).await?;
                    files.push((path, bytes));
                }
                let parsed = tokio::task::spawn_blocking(move || parse(files, &root)).await;
                parsed.unwrap_or_else(|error| Err(DeltaError::invalid(error.to_string())))
            })
        })
        .buffered(PARALLEL)
        .map(|task| task.unwrap_or_else(|error| Err(DeltaError::invalid(error.to_string()))))
}

/// Parses the files of some commits.
pub(crate) fn parse(files: Vec<(String, Bytes)>, root: &Arc<TableRoot>) -> Result<ParsedGroup> {
    let mut group = ParsedGroup::default();
    for (path, bytes) in files {
        for (number, (_, text)) in lines(&bytes, &path)?.into_iter().enumerate() {
            group.line(text, root, &path).map_err(|message| {
                DeltaError::corrupt(
                    &path,
                    format!("line {}: expected an action, found: {message}", number + 1),
                )
            })?;
        }
    }
    for (kind, pieces) in [(FileKind::Add, &group.adds), (FileKind::Remove, &group.removes)] {
        for piece in pieces {
            group
                .shown
                .extend(piece.shown()?.into_iter().map(|(name, shown)| (kind, name, shown)));
        }
    }
    Ok(group)
}

impl ParsedGroup {
    fn line(&mut self, text: &str, root: &TableRoot, path: &str) -> std::result::Result<(), String> {
        if text.len() > LINE_LIMIT {
            return Err(format!("{} bytes", text.len()));
        }
        let line: ActionLine<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let others = [
            ("protocol", line.protocol),
            ("metaData", line.meta_data),
            ("txn", line.txn),
            ("domainMetadata", line.domain_metadata),
        ];
        for (name, raw) in others {
            if let Some(raw) = raw {
                self.others.push((name, raw.to_owned(), path.to_owned()));
            }
        }
        if let Some(add) = line.add {
            self.keys.push(keyed(&add, root)?);
            push(&mut self.adds, add, text.len(), path);
        }
        if let Some(remove) = line.remove {
            self.keys.push(keyed(&remove, root)?);
            push(&mut self.removes, remove, text.len(), path);
        }
        Ok(())
    }
}

fn keyed<K: Kind>(action: &FileAction<'_, K>, root: &TableRoot) -> std::result::Result<(FileKind, Vec<u8>), String> {
    let vector = vector_of(action).map_err(|error| error.to_string())?;
    Ok((K::KIND, file_key(&root.canonical(&action.path.0), vector.as_ref())))
}

fn push<K: Kind>(pieces: &mut Vec<FileRows>, action: FileAction<'_, K>, line: usize, path: &str) {
    if pieces.last().is_none_or(FileRows::is_full) {
        pieces.push(FileRows::new(K::KIND, path));
    }
    if let Some(piece) = pieces.last_mut() {
        piece.push(action, line);
    }
}
