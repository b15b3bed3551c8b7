//! `write_fragments`.

use std::sync::Arc;

use esker_file::{DictionaryWriters, ExternalBlobs, FileVersion, Goal};
use esker_store::block_on;
use esker_table::write::{self, WriteRequest};
use esker_table::TableError;
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatchReader;

use crate::error::{python, Result};
use crate::schema::PySchema;
use crate::signals::stopping_at_signals;
use crate::store::PyStore;
use crate::table::{PyFragment, PyManifest};

/// Writes a stream as data files and returns a fragment for each.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // They are Python's keywords.
#[pyo3(signature = (store, stream, *, schema, data_storage_version, compression, max_rows_per_file, max_bytes_per_file, memory_limit, external_blobs = "refuse", max_rows_per_group = 1024, allow_null_loss = false, base = None, target_bases = Vec::new()))]
pub(crate) fn write_fragments(
    py: Python<'_>,
    store: &PyStore,
    stream: PyRecordBatchReader,
    schema: &PySchema,
    data_storage_version: &str,
    compression: &str,
    max_rows_per_file: u64,
    max_bytes_per_file: u64,
    memory_limit: u64,
    external_blobs: &str,
    max_rows_per_group: usize,
    allow_null_loss: bool,
    base: Option<&PyManifest>,
    target_bases: Vec<Option<u32>>,
) -> Result<Vec<PyFragment>> {
    let batches = stream.into_reader().map_err(python)?;
    let request = WriteRequest {
        schema: schema.0.as_ref().clone(),
        version: FileVersion::parse(data_storage_version)?,
        goal: Goal::parse(compression)?,
        max_rows_per_file,
        max_bytes_per_file,
        memory_limit,
        external_blobs: match external_blobs {
            "reference" => ExternalBlobs::Reference,
            "ingest" => ExternalBlobs::Ingest,
            _ => ExternalBlobs::Refuse,
        },
        max_rows_per_group,
        allow_null_loss,
        dictionaries: match base {
            Some(base) => base
                .0
                .dictionaries()
                .and_then(|d| Ok(DictionaryWriters::of_table(&d)?))?,
            None => DictionaryWriters::default(),
        },
        target_bases,
        stop: Arc::default(),
    };
    let writing = || write::stage_fragments(store.store(), batches, &request);
    let (staged, signal) = stopping_at_signals(py, &request.stop, writing)?;
    match (staged, signal) {
        (Ok(staged), None) => Ok(staged.into_iter().map(|staged| PyFragment(staged.fragment)).collect()),
        (Err(error), None) => Err(error.into()),
        (Err(_), Some(signal)) => Err(python(signal)),
        (Ok(staged), Some(signal)) => {
            // It was done before it saw the signal: nobody will get the fragments.
            py.detach(|| {
                block_on(async {
                    write::discard(store.store(), &staged).await;
                    Ok::<_, TableError>(())
                })
            })?;
            Err(python(signal))
        }
    }
}
