//! Reads rows by address, for updates and merges of rows that a scan found.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use esker_file::schema::BlobView;

use super::files::TableFiles;
use super::take::{in_order, joined, take_fragment, Rows, TakeColumns, Taken};
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::manifest::Manifest;

/// Some columns of the rows of a version, by address.
#[derive(Debug)]
pub struct RowsByAddress {
    files: Arc<TableFiles>,
    columns: Arc<TakeColumns>,
    fragments: HashMap<u64, Fragment>,
}

impl RowsByAddress {
    /// A reader of `columns` of the rows of `manifest`.
    pub fn new(files: Arc<TableFiles>, manifest: &Manifest, columns: &[String], blobs: BlobView) -> Result<Self> {
        let fragments = manifest.fragments();
        let taken = Taken {
            columns: Some(columns),
            in_structs: false,
            blobs,
        };
        Ok(Self {
            files,
            columns: Arc::new(TakeColumns::new(manifest, taken)?),
            fragments: fragments
                .map(|fragment| fragment.map(|fragment| (fragment.id(), fragment)))
                .collect::<Result<_>>()?,
        })
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        self.columns.schema()
    }

    /// The rows at these addresses, in this order, repetitions and deleted rows included.
    pub async fn take(&self, addresses: &[u64]) -> Result<RecordBatch> {
        let mut wanted = addresses.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let mut tasks = Vec::new();
        for here in wanted.chunk_by(|a, b| a >> 32 == b >> 32) {
            let id = here.first().map_or(0, |address| address >> 32);
            let fragment = self.fragments.get(&id).cloned();
            let fragment = fragment
                .ok_or_else(|| TableError::invalid(format!("expected a fragment of the version, found id {id}")))?;
            let offsets = Rows::Physical(here.iter().map(|address| address & u64::from(u32::MAX)).collect());
            let (files, columns) = (self.files.clone(), self.columns.clone());
            tasks.push(tokio::spawn(async move {
                take_fragment(&files, &fragment, &columns, &offsets).await
            }));
        }
        in_order(joined(tasks, self.schema()).await?, &wanted, addresses)
    }
}
