//! `StagedPaths`.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use esker_graveler::branch::StagedPaths;
use esker_graveler::entry::Entry;
use esker_graveler::value::Value;
use pyo3::prelude::*;

use super::batch::PyBatch;
use super::change_stream::PyChangeStream;
use super::entry_columns::{arrow, entries, fields, name_of, type_of};
use super::error::graveler;
use crate::error::Result;

/// Microseconds in a second.
const SECOND: i64 = 1_000_000;

/// Address, size, checksum, time (us), media type, metadata and the address's type of an object.
type Described = (
    String,
    i64,
    String,
    Option<i64>,
    String,
    BTreeMap<String, String>,
    &'static str,
);

/// The staged changes, sorted by path.
#[pyclass(name = "StagedPaths", module = "esker._native.graveler", frozen)]
pub(crate) struct PyStagedPaths(Arc<StagedPaths>);

impl PyStagedPaths {
    /// The shared staged changes.
    pub(super) fn inner(&self) -> Arc<StagedPaths> {
        self.0.clone()
    }
}

fn described(entry: Entry) -> Described {
    let time = entry
        .last_modified
        .map(|(seconds, nanos)| seconds.saturating_mul(SECOND).saturating_add(i64::from(nanos) / 1000));
    (
        entry.address,
        entry.size,
        entry.e_tag,
        time,
        entry.content_type,
        entry.metadata,
        name_of(entry.address_type),
    )
}

#[pymethods]
impl PyStagedPaths {
    #[new]
    fn new() -> Self {
        PyStagedPaths(Arc::default())
    }

    #[allow(clippy::too_many_arguments)] // They are what is told of an object.
    fn stage(
        &self,
        path: &str,
        address: String,
        size_bytes: i64,
        checksum: String,
        modified_us: Option<i64>,
        content_type: String,
        metadata: BTreeMap<String, String>,
        address_type: &str,
    ) -> Result<()> {
        let last_modified = modified_us.map(|time| {
            // The remainder of a second is below 10^9.
            let nanos = i32::try_from(time.rem_euclid(SECOND) * 1000).unwrap_or(0);
            (time.div_euclid(SECOND), nanos)
        });
        let entry = Entry {
            address,
            address_type: type_of(address_type).map_err(graveler)?,
            last_modified,
            size: size_bytes,
            e_tag: checksum,
            metadata,
            content_type,
        };
        self.0.stage(path, Some(entry));
        Ok(())
    }

    fn stage_removal(&self, path: &str) {
        self.0.stage(path, None);
    }

    fn get(&self, path: &str) -> Result<Option<Described>> {
        let found = self.0.get(path).map_err(graveler)?;
        Ok(found.flatten().map(described))
    }

    fn within(&self, prefix: &str, from_path: &str, count: usize) -> Result<Option<PyBatch>> {
        let found = self.0.messages_within(prefix, from_path, count);
        if found.is_empty() {
            return Ok(None);
        }
        let schema = Schema::new(vec![
            Field::new("path", DataType::Utf8, false),
            Field::new("entry", DataType::Struct(fields()), true),
        ]);
        let framed = |message: &[u8]| {
            let value = Value {
                identity: &[],
                data: message,
            };
            value.encode()
        };
        let values: Vec<Option<Vec<u8>>> = found
            .iter()
            .map(|(_, message)| message.as_deref().map(framed))
            .collect();
        let entries = entries(values.iter().map(Option::as_deref)).map_err(graveler)?;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(found.iter().map(|(path, _)| path))),
            Arc::new(entries),
        ];
        let batch = RecordBatch::try_new(Arc::new(schema), columns).map_err(|error| graveler(arrow(error)))?;
        Ok(Some(PyBatch(batch)))
    }

    fn forget(&self, path: &str) {
        self.0.forget(path);
    }

    fn copy(&self) -> Self {
        PyStagedPaths(Arc::new(self.0.copy()))
    }

    fn changes(&self) -> PyChangeStream {
        PyChangeStream::new(self.0.changes())
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __contains__(&self, path: &str) -> bool {
        self.0.contains(path)
    }
}
