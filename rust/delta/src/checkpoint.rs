//! Reads a checkpoint: the whole state of a version.
//!
//! Spec: "Checkpoints": one file, several parts, or a V2 checkpoint whose adds lie in sidecars. A checkpoint is valid only if it is
//! complete, with protocol and metadata, and with all files that it names.

use std::sync::Arc;

use esker_store::StoreRef;
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::checkpoint_file::{self, CheckpointContent};
use crate::error::{DeltaError, Result};
use crate::listing::{CheckpointFiles, LOG};
use crate::path::{decode_path, TableRoot};

/// Files that are read concurrently, from a store behind a network and from a local one.
const FAR: usize = 8;
const NEAR: usize = 2;

/// Reads all files of a checkpoint.
pub(crate) async fn read(
    store: &StoreRef,
    checkpoint: &CheckpointFiles,
    root: &Arc<TableRoot>,
) -> Result<CheckpointContent> {
    let mut whole = CheckpointContent::default();
    for content in read_files(store, checkpoint.files.clone(), checkpoint.version, root).await? {
        whole.take(content);
    }
    whole.files.clone_from(&checkpoint.files);
    let sidecars = std::mem::take(&mut whole.sidecars);
    if !sidecars.is_empty() {
        let paths = sidecars
            .iter()
            .map(|sidecar| sidecar_path(&sidecar.path, root))
            .collect::<Result<Vec<_>>>()?;
        whole.files.extend(paths.iter().cloned());
        for content in read_files(store, paths, checkpoint.version, root).await? {
            whole.chunks.extend(content.chunks);
        }
    }
    let name = checkpoint.files.first().map(String::as_str).unwrap_or_default();
    for (what, is_there) in [
        ("metaData", whole.metadata.is_some()),
        ("protocol", whole.protocol.is_some()),
    ] {
        if !is_there {
            return Err(DeltaError::corrupt(
                name,
                format!("the checkpoint of version {} has no {what} action", checkpoint.version),
            ));
        }
    }
    Ok(whole)
}

async fn read_files(
    store: &StoreRef,
    paths: Vec<String>,
    version: u64,
    root: &Arc<TableRoot>,
) -> Result<Vec<CheckpointContent>> {
    let tasks = paths.into_iter().map(|path| {
        let (store, root) = (store.clone(), root.clone());
        tokio::spawn(async move { checkpoint_file::read(&store, &path, version, &root).await })
    });
    stream::iter(tasks)
        .buffered(if store.is_far() { FAR } else { NEAR })
        .map(|joined| joined.unwrap_or_else(|error| Err(DeltaError::corrupt(LOG, error.to_string()))))
        .try_collect()
        .await
}

/// A sidecar is named by its file within `_sidecars/`, or by its absolute path.
fn sidecar_path(name: &str, root: &TableRoot) -> Result<String> {
    let name = decode_path(name);
    let canonical = root.canonical(&name);
    if canonical.starts_with(LOG) {
        return Ok(canonical.into_owned());
    }
    if name.contains('/') {
        return Err(DeltaError::unsupported(format!(
            "expected a sidecar in _delta_log/_sidecars, found {name}"
        )));
    }
    Ok(format!("{LOG}_sidecars/{name}"))
}

impl CheckpointContent {
    fn take(&mut self, other: Self) {
        self.chunks.extend(other.chunks);
        self.metadata = other.metadata.or(self.metadata.take());
        self.protocol = other.protocol.or(self.protocol.take());
        self.transactions.extend(other.transactions);
        self.domains.extend(other.domains);
        self.sidecars.extend(other.sidecars);
    }
}
