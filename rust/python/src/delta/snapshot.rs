//! `Snapshot`.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_delta::{ColumnMapping, Snapshot};
use esker_table::TableError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::PySchema;

use super::arrow_data::PyArrowData;
use super::checkpoint;
use super::error::raised;
use super::file_selection::PyFileSelection;
use crate::arrow::schema_capsule;
use crate::error::Result;
use crate::expr::PyPredicate;
use crate::signals::or_signal;
use crate::store::PyStore;

/// One version of a Delta table.
#[pyclass(name = "Snapshot", module = "esker._native.delta", frozen)]
pub(crate) struct PySnapshot(pub(super) Arc<Snapshot>);

#[pymethods]
impl PySnapshot {
    #[staticmethod]
    #[pyo3(signature = (store, *, version = None, timezone = None))]
    fn load(py: Python<'_>, store: &PyStore, version: Option<u64>, timezone: Option<&str>) -> Result<Self> {
        let mut snapshot = or_signal(py, || Snapshot::load(store.store(), version))?.map_err(raised)?;
        if let Some(name) = timezone {
            snapshot = snapshot.with_zone(name).map_err(raised)?;
        }
        Ok(PySnapshot(Arc::new(snapshot)))
    }

    #[pyo3(signature = (store, *, version = None))]
    fn refresh(&self, py: Python<'_>, store: &PyStore, version: Option<u64>) -> Result<Self> {
        let snapshot = or_signal(py, || self.0.refresh(store.store(), version))?.map_err(raised)?;
        Ok(PySnapshot(Arc::new(snapshot)))
    }

    fn is_replaced(&self, py: Python<'_>, store: &PyStore) -> Result<bool> {
        or_signal(py, || self.0.is_replaced(store.store()))?.map_err(raised)
    }

    #[getter]
    fn version(&self) -> u64 {
        self.0.version
    }

    #[getter]
    fn root(&self) -> &str {
        self.0.root.prefix()
    }

    #[getter]
    fn checkpoint_version(&self) -> Option<u64> {
        self.0.checkpoint_version
    }

    #[getter]
    fn in_commit_timestamp(&self) -> Option<i64> {
        self.0.in_commit_timestamp
    }

    #[getter]
    fn num_files(&self) -> usize {
        self.0.num_files()
    }

    #[getter]
    fn metadata_json(&self) -> Result<String> {
        esker_delta::actions::to_json(self.0.metadata.as_ref()).map_err(raised)
    }

    #[getter]
    fn protocol_json(&self) -> Result<String> {
        esker_delta::actions::to_json(self.0.protocol.as_ref()).map_err(raised)
    }

    #[getter]
    fn column_mapping(&self) -> &'static str {
        match self.0.schema.mapping {
            ColumnMapping::None => "none",
            ColumnMapping::Name => "name",
            ColumnMapping::Id => "id",
        }
    }

    #[getter]
    fn partition_columns(&self) -> Vec<String> {
        self.0.schema.partition_columns.clone()
    }

    #[getter]
    fn transactions(&self) -> BTreeMap<String, (i64, Option<i64>)> {
        let transactions = self.0.transactions.values();
        transactions
            .map(|t| (t.app_id.clone(), (t.version, t.last_updated)))
            .collect()
    }

    #[getter]
    fn domains(&self) -> BTreeMap<String, String> {
        let domains = self.0.domains.values();
        domains.map(|d| (d.domain.clone(), d.configuration.clone())).collect()
    }

    fn parse_partition_values(&self, column: &str, values: Vec<Option<String>>) -> Result<PyArrowData> {
        let values: Vec<Option<&str>> = values.iter().map(Option::as_deref).collect();
        Ok(PyArrowData::array(
            self.0.parse_partition_values(column, &values).map_err(raised)?,
        ))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0.schema.to_arrow())
    }

    #[pyo3(signature = (store, predicates = None))]
    fn select(
        &self,
        py: Python<'_>,
        store: &PyStore,
        predicates: Option<Vec<PyRef<'_, PyPredicate>>>,
    ) -> Result<PyFileSelection> {
        let filters: Vec<_> = predicates
            .iter()
            .flatten()
            .map(|predicate| predicate.inner().clone())
            .collect();
        let mut filters = filters.into_iter();
        let filter = match filters.next() {
            Some(first) => Some(
                filters
                    .try_fold(first, |all, next| all.and(&next))
                    .map_err(TableError::from)?,
            ),
            None => None,
        };
        let selection = match &filter {
            Some(filter) => or_signal(py, || self.0.select(store.store(), filter))?,
            None => Ok(self.0.all()),
        };
        Ok(PyFileSelection::new(self.0.clone(), selection.map_err(raised)?))
    }

    #[pyo3(signature = (store, files, columns, *, sidecar = None, tombstones_from, transactions_from = None))]
    #[allow(clippy::too_many_arguments)] // They are keywords in Python.
    fn write_checkpoint(
        &self,
        py: Python<'_>,
        store: &PyStore,
        files: Vec<String>,
        columns: PySchema,
        sidecar: Option<(String, String, i64)>,
        tombstones_from: i64,
        transactions_from: Option<i64>,
    ) -> Result<(u64, u64, u64)> {
        let retention = (tombstones_from, transactions_from);
        checkpoint::write(py, &self.0, store, files, columns, sidecar, retention)
    }

    fn __repr__(&self) -> String {
        format!("Snapshot(version={}, files={})", self.0.version, self.0.num_files())
    }
}
