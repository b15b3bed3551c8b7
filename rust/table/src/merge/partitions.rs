//! Partitions both sides by the hash of their keys: rows with equal keys are in the same partition. There is one partition if the source's
//! keys fit in memory.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use esker_merge::{bytes_of, part_rows, spill_folder, KeyEncoder, MergeSource, Spill, Waiting};

use super::target::{TargetBatch, TargetKeys};
use crate::error::{Result, TableError};

/// Memory for a row of the source besides its key: its entry in the key table, and the pair that it may become.
const BYTES_PER_ROW: u64 = 64;

/// The most partitions.
const MAX_PARTS: u64 = 4096;

/// The rows of the source, partitioned.
pub(super) enum SourceParts {
    /// One partition.
    One(Arc<MergeSource>),
    /// Several, spilled to disk.
    Many(Spill, usize),
}

impl SourceParts {
    /// Partitions the source so that the columns `held`, which must be in memory, take about `limit` bytes or less in each partition; batch
    /// by batch while `go_on` does not fail.
    pub fn new(
        source: &Arc<MergeSource>,
        encoder: &KeyEncoder,
        on: &[usize],
        held: &[usize],
        limit: u64,
        go_on: impl Fn() -> Result<()>,
    ) -> Result<Self> {
        let mut bytes = source.num_rows().saturating_mul(BYTES_PER_ROW);
        let columns: Vec<usize> = on.iter().chain(held).copied().collect();
        for batch in source.batches() {
            go_on()?;
            let held = batch?
                .project(&columns)
                .map_err(|e| TableError::invalid(e.to_string()))?;
            // Keys are held twice: as read, and encoded for comparison.
            bytes = bytes.saturating_add(bytes_of(&held).saturating_mul(2));
        }
        let parts = bytes.div_ceil(limit.max(1)).clamp(1, MAX_PARTS);
        if parts == 1 {
            return Ok(Self::One(source.clone()));
        }
        let parts = usize::try_from(parts).unwrap_or(1);
        let mut spill = Spill::create(&spill_folder(), source.schema().clone(), parts)?;
        let mut waiting = Waiting::new(parts, limit);
        for batch in source.batches() {
            go_on()?;
            let batch = batch?;
            let keys = encoder.encode(&project(&batch, on)?)?;
            for (part, rows) in part_rows(&keys, parts).into_iter().enumerate() {
                waiting.push(part, &batch, rows)?;
            }
            waiting.flush_if_full(&mut spill)?;
        }
        waiting.flush(&mut spill)?;
        Ok(Self::Many(spill, parts))
    }

    /// The number of partitions.
    pub fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(_, parts) => *parts,
        }
    }

    /// The rows of a part.
    pub fn batches(&self, part: usize) -> Box<dyn Iterator<Item = Result<RecordBatch>> + '_> {
        match self {
            Self::One(source) => Box::new(source.batches().map(|batch| Ok(batch?))),
            Self::Many(spill, _) => Box::new(spill.read(part).map(|batch| Ok(batch?))),
        }
    }

    /// Bytes on disk, without the source itself.
    pub fn spilled_bytes(&self) -> u64 {
        match self {
            Self::One(_) => 0,
            Self::Many(spill, _) => spill.bytes(),
        }
    }
}

/// The table's keys in the same partitions, spilled to disk.
pub(super) struct TargetParts {
    spill: Spill,
    schema: SchemaRef,
    waiting: Waiting,
    parts: usize,
}

impl TargetParts {
    /// Empty partitions.
    pub fn new(columns: &TargetKeys, key_types: &[arrow_schema::DataType], parts: usize, limit: u64) -> Result<Self> {
        let schema = columns.spill_schema(key_types);
        Ok(Self {
            spill: Spill::create(&spill_folder(), schema.clone(), parts)?,
            schema,
            waiting: Waiting::new(parts, limit),
            parts,
        })
    }

    /// Adds rows of the table.
    pub fn push(&mut self, columns: &TargetKeys, batch: &TargetBatch, encoder: &KeyEncoder) -> Result<()> {
        let keys = encoder.encode(&batch.keys)?;
        let batch = columns.to_spill(batch, &self.schema)?;
        for (part, rows) in part_rows(&keys, self.parts).into_iter().enumerate() {
            self.waiting.push(part, &batch, rows)?;
        }
        Ok(self.waiting.flush_if_full(&mut self.spill)?)
    }

    /// Writes the buffered rows.
    pub fn finish(&mut self) -> Result<()> {
        Ok(self.waiting.flush(&mut self.spill)?)
    }

    /// The rows of a part.
    pub fn batches(&self, part: usize) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
        self.spill.read(part).map(|batch| Ok(batch?))
    }

    /// Bytes on disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.spill.bytes()
    }
}

/// Some columns of a batch.
pub(super) fn project(batch: &RecordBatch, columns: &[usize]) -> Result<Vec<ArrayRef>> {
    let column = |index: &usize| batch.columns().get(*index).cloned();
    let found: Option<Vec<ArrayRef>> = columns.iter().map(column).collect();
    found.ok_or_else(|| TableError::invalid(format!("expected columns {columns:?}, found {}", batch.num_columns())))
}
