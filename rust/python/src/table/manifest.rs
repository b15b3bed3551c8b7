//! `Manifest`.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use esker_store::block_on;
use esker_table::manifest::Manifest;
use esker_table::row_ids::RowChange;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::base_path::{base_path_parts, PyBasePath};
use super::fragment::PyFragment;
use super::index::PyIndex;
use super::transaction::PyTransaction;
use crate::error::{NativeError, Result};
use crate::schema::PySchema;
use crate::store::PyStore;

/// One version of a table.
#[pyclass(name = "Manifest", module = "esker._native.table", frozen)]
pub(crate) struct PyManifest(pub(crate) Arc<Manifest>);

#[pymethods]
impl PyManifest {
    #[staticmethod]
    fn decode(py: Python<'_>, data: PyBackedBytes, path: &str) -> Result<Self> {
        let data = Bytes::from_owner(data);
        Ok(PyManifest(Arc::new(py.detach(|| Manifest::decode(&data, path))?)))
    }

    #[staticmethod]
    fn read(py: Python<'_>, store: &PyStore, path: &str) -> Result<Self> {
        let store = store.store().clone();
        let manifest = py.detach(|| -> Result<Manifest> {
            let data = block_on(store.get(path))?;
            Manifest::decode(&data, path).map_err(NativeError::from)
        })?;
        Ok(PyManifest(Arc::new(manifest)))
    }

    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let parts = py.detach(|| self.0.encoded_parts()).map_err(NativeError::from)?;
        let length = parts.iter().map(Bytes::len).sum();
        PyBytes::new_with(py, length, |mut out| {
            for part in &parts {
                out.write_all(part)?;
            }
            Ok(())
        })
    }

    #[getter]
    fn size_in_file(&self) -> Option<u64> {
        self.0.size_in_file()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>, String))> {
        let this = slf.get();
        Ok((
            slf.get_type().getattr("decode")?,
            (this.encode(slf.py())?, this.0.path().to_string()),
        ))
    }

    #[getter]
    fn version(&self) -> u64 {
        self.0.version()
    }

    #[getter]
    fn timestamp_ns(&self) -> i64 {
        self.0.timestamp_ns()
    }

    #[getter]
    fn data_storage_version(&self) -> Result<String> {
        Ok(self.0.data_storage_version()?.to_string())
    }

    #[getter]
    fn storage_version_to_write(&self) -> Result<String> {
        Ok(self.0.storage_version_to_write()?.to_string())
    }

    #[getter]
    fn reader_feature_flags(&self) -> u64 {
        self.0.reader_feature_flags()
    }

    #[getter]
    fn writer_feature_flags(&self) -> u64 {
        self.0.writer_feature_flags()
    }

    #[getter]
    fn writer_version(&self) -> Option<(&str, &str)> {
        self.0.writer_version()
    }

    #[getter]
    fn transaction_file(&self) -> Option<&str> {
        self.0.transaction_file()
    }

    #[getter]
    fn schema(&self) -> Result<PySchema> {
        Ok(PySchema(self.0.schema()?))
    }

    #[getter]
    fn config(&self) -> BTreeMap<String, String> {
        self.0.config().clone()
    }

    #[getter]
    fn table_metadata(&self) -> BTreeMap<String, String> {
        self.0.table_metadata().clone()
    }

    #[getter]
    fn max_fragment_id(&self) -> Result<Option<u32>> {
        Ok(self.0.max_fragment_id()?)
    }

    #[getter]
    fn max_field_id(&self) -> Result<i32> {
        Ok(self.0.max_field_id()?)
    }

    #[getter]
    fn branch(&self) -> Option<&str> {
        self.0.branch()
    }

    #[getter]
    fn base_paths(&self) -> Vec<PyBasePath> {
        self.0.base_paths().iter().map(base_path_parts).collect()
    }

    #[getter]
    fn indices(&self) -> Result<Vec<PyIndex>> {
        Ok(self.0.indices()?.into_iter().map(PyIndex).collect())
    }

    fn index_coverage(&self, py: Python<'_>, store: &PyStore) -> Result<BTreeMap<u64, Vec<String>>> {
        let covered = py.detach(|| block_on(self.0.index_coverage(store.store())))?;
        Ok(covered.into_iter().collect())
    }

    #[getter]
    fn num_fragments(&self) -> usize {
        self.0.num_fragments()
    }

    #[getter]
    fn num_rows(&self) -> Result<Option<u64>> {
        Ok(self.0.num_rows()?)
    }

    fn fragments(&self) -> Result<Vec<PyFragment>> {
        Ok(self
            .0
            .fragments()
            .map(|f| f.map(PyFragment))
            .collect::<std::result::Result<Vec<_>, _>>()?)
    }

    fn summary(&self) -> Result<BTreeMap<&'static str, u64>> {
        let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut add = |name: &'static str, value: u64| *counts.entry(name).or_insert(0) += value;
        for fragment in self.0.fragments() {
            let fragment = fragment?;
            add("total_fragments", 1);
            add("total_data_files", fragment.files().len() as u64);
            add(
                "total_files_size",
                fragment.files().iter().filter_map(|f| f.file_size_bytes).sum(),
            );
            add("total_data_file_rows", fragment.physical_rows().unwrap_or(0));
            add("total_deletion_files", u64::from(fragment.deletion_file().is_some()));
            add("total_deletion_file_rows", fragment.num_deletions().unwrap_or(0));
            add("total_rows", fragment.num_rows().unwrap_or(0));
        }
        for name in [
            "total_fragments",
            "total_data_files",
            "total_files_size",
            "total_data_file_rows",
            "total_deletion_files",
            "total_deletion_file_rows",
            "total_rows",
        ] {
            counts.entry(name).or_insert(0);
        }
        Ok(counts)
    }

    #[pyo3(signature = (after, upto, *, created))]
    fn fragments_of_versions(&self, after: u64, upto: u64, created: bool) -> Result<Vec<u64>> {
        let change = if created {
            RowChange::Created
        } else {
            RowChange::Updated
        };
        Ok(self.0.fragments_of_versions(after, upto, change)?)
    }

    fn check_readable(&self) -> Result<()> {
        Ok(self.0.check_readable()?)
    }

    fn check_writable(&self) -> Result<()> {
        Ok(self.0.check_writable()?)
    }

    fn inline_transaction(&self) -> Result<Option<PyTransaction>> {
        Ok(self.0.inline_transaction()?.map(PyTransaction))
    }

    fn __repr__(&self) -> String {
        format!(
            "Manifest(version={}, fragments={})",
            self.0.version(),
            self.0.num_fragments()
        )
    }
}
