//! `Snapshot.write_checkpoint`.

use arrow_schema::SchemaRef;
use esker_delta::{CheckpointPlan, CheckpointWritten, SidecarPlan, Snapshot};
use esker_store::block_on;
use pyo3::prelude::*;
use pyo3_arrow::PySchema;

use super::error::raised;
use crate::error::Result;
use crate::store::PyStore;

/// Writes a checkpoint; returns its bytes (without sidecars), actions and adds.
pub(super) fn write(
    py: Python<'_>,
    snapshot: &Snapshot,
    store: &PyStore,
    files: Vec<String>,
    columns: PySchema,
    sidecar: Option<(String, String, i64)>,
    retention: (i64, Option<i64>),
) -> Result<(u64, u64, u64)> {
    let columns: SchemaRef = columns.into();
    let plan = CheckpointPlan {
        files,
        sidecar: sidecar.map(|(path, name, modification_time)| SidecarPlan {
            path,
            name,
            modification_time,
        }),
        columns,
        tombstones_from: retention.0,
        transactions_from: retention.1,
    };
    let written = py.detach(|| block_on(snapshot.write_checkpoint(store.store(), &plan)));
    let CheckpointWritten { bytes, actions, adds } = written.map_err(raised)?;
    Ok((bytes, actions, adds))
}
