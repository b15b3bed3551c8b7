//! `write_fragments`.

use esker_file::{DictionaryWriters, ExternalBlobs, FileVersion, Goal};
use esker_store::block_on;
use esker_table::write::{self, WriteRequest};
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatchReader;

use crate::error::{python, Result};
use crate::schema::PySchema;
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
    };
    let fragments = py.detach(|| block_on(write::write_fragments(store.store(), batches, &request)))?;
    Ok(fragments.into_iter().map(PyFragment).collect())
}
