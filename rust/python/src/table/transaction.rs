//! `Transaction`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use esker_file::{Dictionaries, FileVersion};
use esker_store::block_on;
use esker_table::apply::CommitParams;
use esker_table::conflict::{self, HeldColumns, Verdict};
use esker_table::dictionary::dictionaries_of;
use esker_table::operation::Operation;
use esker_table::transaction::Transaction;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::fragment::PyFragment;
use super::manifest::PyManifest;
use super::operation::PyOperation;
use crate::error::Result;
use crate::schema::PySchema;
use crate::store::PyStore;

/// A change to a table.
#[pyclass(name = "Transaction", module = "esker._native.table", frozen)]
pub(crate) struct PyTransaction(pub(crate) Transaction);

/// The fields that a staged change names, as they are in one version.
#[pyclass(name = "HeldColumns", module = "esker._native.table", frozen)]
pub(crate) struct PyHeldColumns(HeldColumns);

#[pymethods]
impl PyHeldColumns {
    fn after(&self, theirs: &PyTransaction, made: &PyManifest) -> Option<PyHeldColumns> {
        self.0.after(&theirs.0, &made.0).map(PyHeldColumns)
    }
}

fn with_uuid(transaction: Transaction, uuid: Option<String>) -> Result<PyTransaction> {
    Ok(PyTransaction(match uuid {
        Some(uuid) => transaction.with_uuid(&uuid)?,
        None => transaction,
    }))
}

#[pymethods]
impl PyTransaction {
    #[new]
    #[pyo3(signature = (read_version, operation, *, properties = None, uuid = None))]
    fn new(
        read_version: u64,
        operation: &PyOperation,
        properties: Option<BTreeMap<String, String>>,
        uuid: Option<String>,
    ) -> Result<Self> {
        let transaction = Transaction::new(read_version, &operation.0, properties.unwrap_or_default())?;
        with_uuid(transaction, uuid)
    }

    #[staticmethod]
    #[pyo3(signature = (read_version, fragments, *, properties = None, uuid = None))]
    fn append(
        read_version: u64,
        fragments: Vec<PyFragment>,
        properties: Option<BTreeMap<String, String>>,
        uuid: Option<String>,
    ) -> Result<Self> {
        let fragments: Vec<_> = fragments.into_iter().map(|f| f.0).collect();
        with_uuid(
            Transaction::append(read_version, &fragments, properties.unwrap_or_default())?,
            uuid,
        )
    }

    #[staticmethod]
    #[pyo3(signature = (read_version, fragments, schema, *, config = None, properties = None, uuid = None))]
    fn overwrite(
        read_version: u64,
        fragments: Vec<PyFragment>,
        schema: &PySchema,
        config: Option<BTreeMap<String, String>>,
        properties: Option<BTreeMap<String, String>>,
        uuid: Option<String>,
    ) -> Result<Self> {
        let fragments: Vec<_> = fragments.into_iter().map(|f| f.0).collect();
        let (config, properties) = (config.unwrap_or_default(), properties.unwrap_or_default());
        with_uuid(
            Transaction::overwrite(read_version, &fragments, &schema.0, config, properties)?,
            uuid,
        )
    }

    #[staticmethod]
    fn decode(data: &[u8]) -> Result<Self> {
        Ok(PyTransaction(Transaction::decode(&Bytes::copy_from_slice(data))?))
    }

    fn encode<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.encode())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("decode")?, (slf.get().encode(slf.py()),)))
    }

    #[getter]
    fn is_inline(&self) -> bool {
        self.0.is_inline()
    }

    #[getter]
    fn read_version(&self) -> u64 {
        self.0.read_version()
    }

    #[getter]
    fn uuid(&self) -> &str {
        self.0.uuid()
    }

    #[getter]
    fn operation(&self) -> &'static str {
        self.0.kind().name()
    }

    #[getter]
    fn properties(&self) -> BTreeMap<String, String> {
        self.0.properties().clone()
    }

    #[getter]
    fn fragments(&self) -> Result<Vec<PyFragment>> {
        let fragments = match self.0.operation()? {
            Operation::Append { fragments } | Operation::Overwrite { fragments, .. } => fragments,
            _ => Vec::new(),
        };
        Ok(fragments.into_iter().map(PyFragment).collect())
    }

    #[getter]
    fn schema(&self) -> Result<Option<PySchema>> {
        Ok(match self.0.operation()? {
            Operation::Overwrite { schema, .. } => Some(schema.schema()?.into()),
            _ => None,
        })
    }

    fn decoded(&self) -> Result<PyOperation> {
        Ok(PyOperation(self.0.operation()?))
    }

    fn may_insert_same_keys(&self, other: &PyTransaction) -> bool {
        conflict::may_insert_same_keys(&self.0, &other.0)
    }

    fn conflict_with(&self, other: &PyTransaction) -> &'static str {
        match conflict::check(&self.0, &other.0) {
            Verdict::Compatible => "compatible",
            Verdict::Retry => "retry",
            Verdict::Incompatible => "incompatible",
        }
    }

    fn held_columns(&self, read: &PyManifest) -> Option<PyHeldColumns> {
        HeldColumns::new(&self.0, &read.0).map(PyHeldColumns)
    }

    #[pyo3(signature = (store, before, theirs, change = None))]
    fn reconcile(
        &self,
        py: Python<'_>,
        store: &PyStore,
        before: &PyManifest,
        theirs: &PyManifest,
        change: Option<&PyTransaction>,
    ) -> Result<Option<PyTransaction>> {
        let (before, theirs) = (before.0.clone(), theirs.0.clone());
        let adapted = py.detach(|| {
            let change = change.map(|change| &change.0);
            block_on(self.0.reconcile(store.store(), &before, &theirs, change))
        })?;
        Ok(adapted.map(PyTransaction))
    }

    #[pyo3(signature = (source, *, timestamp_ns))]
    fn apply_clone(&self, py: Python<'_>, source: &PyManifest, timestamp_ns: i64) -> Result<PyManifest> {
        let source = source.0.clone();
        let params = CommitParams {
            version: source.version(),
            timestamp_ns,
            data_storage_version: None,
            stable_row_ids: false,
        };
        let next = py.detach(|| self.0.apply_clone(&source, &params))?;
        Ok(PyManifest(Arc::new(next)))
    }

    #[allow(clippy::too_many_arguments)] // Each has a name in Python.
    #[pyo3(signature = (base, *, version, data_storage_version, timestamp_ns, restored = None, read = None, store = None, enable_stable_row_ids = false))]
    fn apply(
        &self,
        py: Python<'_>,
        base: Option<&PyManifest>,
        version: u64,
        data_storage_version: &str,
        timestamp_ns: i64,
        restored: Option<&PyManifest>,
        read: Option<&PyManifest>,
        store: Option<&PyStore>,
        enable_stable_row_ids: bool,
    ) -> Result<PyManifest> {
        let params = CommitParams {
            version,
            timestamp_ns,
            data_storage_version: Some(FileVersion::parse(data_storage_version)?),
            stable_row_ids: enable_stable_row_ids,
        };
        let base = base.map(|manifest| manifest.0.clone());
        let restored = restored.map(|manifest| manifest.0.clone());
        let read = read.map(|manifest| manifest.0.clone());
        let store = store.map(|store| store.store().clone());
        let next = py.detach(|| match (base.as_deref(), restored.as_deref()) {
            (Some(base), Some(restored)) => self.0.apply_restore(base, restored, &params),
            (base, _) => {
                // Only files of version 0.1 share dictionaries, which the manifest holds.
                let shares = params.data_storage_version == Some(FileVersion::V0_1);
                let shared = match &store {
                    Some(store) if shares => block_on(dictionaries_of(store, &self.0))?,
                    _ => Dictionaries::new(),
                };
                match (&store, read.as_deref(), base) {
                    (_, Some(read), Some(base)) => self.0.apply_since(read, base, &params, &shared),
                    (Some(store), _, base) => block_on(self.0.apply_in(store, base, &params, &shared)),
                    (None, _, base) => self.0.apply_with(base, &params, &shared),
                }
            }
        })?;
        Ok(PyManifest(Arc::new(next)))
    }

    fn __repr__(&self) -> String {
        format!(
            "Transaction({}, read_version={}, uuid={:?})",
            self.operation(),
            self.0.read_version(),
            self.0.uuid()
        )
    }
}
