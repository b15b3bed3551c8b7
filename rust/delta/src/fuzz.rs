//! Bodies for fuzzing: any bytes end in actions or in an error.
//!
//! `cargo test` replays `fuzz/corpus` and seeded mutations of it; `cargo fuzz` calls the same function, see `fuzz/README.md`.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use bytes::Bytes;
use esker_store::{block_on, memory, StoreRef};

use crate::actions::DeletionVectorDescriptor;
use crate::changes::parse_changes;
use crate::checkpoint_write::{parsed_columns, typed_json, CheckpointPlan};
use crate::commit::parse_commit;
use crate::deletion_vector::DeletionVector;
use crate::error::{DeltaError, Result};
use crate::partition::typed;
use crate::path::TableRoot;
use crate::snapshot::Snapshot;

/// Their names, which are those of folders in `fuzz/corpus`.
pub const TARGETS: [&str; 5] = [
    "delta_commit",
    "delta_checkpoint",
    "delta_vector",
    "delta_vector_place",
    "delta_values",
];

/// The outcome of an input.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Why it could not be read.
    pub errors: Vec<DeltaError>,
    /// Actions, rows or values that were read.
    pub records: u64,
}

impl Outcome {
    fn of(result: Result<u64>) -> Self {
        match result {
            Ok(records) => Self {
                errors: Vec::new(),
                records,
            },
            Err(error) => Self {
                errors: vec![error],
                records: 0,
            },
        }
    }
}

/// Runs a body. An unknown name is no target and ends in an error.
pub fn run(target: &str, data: &[u8]) -> Outcome {
    Outcome::of(match target {
        "delta_commit" => commit(data),
        "delta_checkpoint" => checkpoint(data),
        "delta_vector" => DeletionVector::decode(data, "fuzz").map(|vector| vector.len()),
        "delta_vector_place" => vector_place(data),
        "delta_values" => values(data),
        other => Err(DeltaError::invalid(format!(
            "expected one of {TARGETS:?}, found {other:?}"
        ))),
    })
}

/// A commit, read by each of the parsers.
fn commit(data: &[u8]) -> Result<u64> {
    let (bytes, root) = (Bytes::copy_from_slice(data), Arc::new(TableRoot::new("/t")));
    // Each parser may refuse what the others skip.
    let read = parse_commit(&bytes, "fuzz", 0, &root).map(|found| found.adds.len() as u64);
    let changed = parse_changes(&bytes, "fuzz", 0, &root).map(|found| found.adds.len() as u64);
    let columns = parsed_columns(&bytes, &root);
    Ok(read? + changed? + columns?)
}

/// A checkpoint in Parquet: opened, its statistics read, and rewritten.
fn checkpoint(data: &[u8]) -> Result<u64> {
    let store: StoreRef = Arc::new(memory::private()?);
    block_on(async {
        let path = |name: &str| format!("_delta_log/{:020}.{name}", 0);
        store.put(&path("json"), Bytes::new()).await?;
        store
            .put(&path("checkpoint.parquet"), Bytes::copy_from_slice(data))
            .await?;
        let snapshot = Snapshot::load(&store, None).await?;
        let all = snapshot.all();
        snapshot.describe(&all)?;
        snapshot.statistics(&store, &all, true).await?;
        let text = |name: &str| Field::new(name, DataType::Utf8, true);
        let add = Fields::from(vec![text("path"), text("stats")]);
        let remove = Fields::from(vec![text("path")]);
        let plan = CheckpointPlan {
            files: vec![path("checkpoint.parquet")],
            sidecar: None,
            columns: Arc::new(Schema::new(vec![
                Field::new("add", DataType::Struct(add), true),
                Field::new("remove", DataType::Struct(remove), true),
                Field::new("protocol", DataType::Struct(Fields::empty()), true),
                Field::new("metaData", DataType::Struct(Fields::empty()), true),
            ])),
            tombstones_from: 0,
            transactions_from: None,
        };
        Ok(snapshot.write_checkpoint(&store, &plan).await?.adds + 1)
    })
}

/// A deletion vector's descriptor as JSON, and the vector that it names.
fn vector_place(data: &[u8]) -> Result<u64> {
    let corrupt = |error: serde_json::Error| DeltaError::corrupt("fuzz", error.to_string());
    let descriptor: DeletionVectorDescriptor = serde_json::from_slice(data).map_err(corrupt)?;
    let root = TableRoot::new("/t");
    crate::deletion_vector::place(&descriptor, &root)?;
    let store: StoreRef = Arc::new(memory::private()?);
    match block_on(DeletionVector::read(&store, &root, &descriptor)) {
        Ok(vector) => Ok(vector.len()),
        // It names a file that does not exist.
        Err(DeltaError::Store(error)) if error.is_not_found() => Ok(1),
        Err(error) => Err(error),
    }
}

/// A text as a partition value of each type, and as JSON in a column of each.
fn values(data: &[u8]) -> Result<u64> {
    let text = std::str::from_utf8(data).map_err(|error| DeltaError::corrupt("fuzz", error.to_string()))?;
    let mut found = 0;
    for data_type in [
        DataType::Utf8,
        DataType::Binary,
        DataType::Boolean,
        DataType::Int8,
        DataType::Int64,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal128(38, 10),
        DataType::Date32,
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Timestamp(TimeUnit::Microsecond, None),
    ] {
        found += u64::from(typed(&[Some(text)], &data_type, "p", None).is_ok());
        found += u64::from(typed_json(text, &data_type)?);
    }
    Ok(found)
}
