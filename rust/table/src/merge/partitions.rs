//! Partitions both sides by the hash of their keys: rows with equal keys are in the same partition. There is one partition if the source's
//! keys fit in memory.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::take::take_record_batch;

use super::keys::{KeyEncoder, Keys};
use super::source::{bytes_of, spill_folder, MergeSource};
use super::spill::Spill;
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
    /// Partitions the source so that the columns `held`, which must be in memory, take about `limit` bytes or less in each partition.
    pub fn new(
        source: &Arc<MergeSource>,
        encoder: &KeyEncoder,
        on: &[usize],
        held: &[usize],
        limit: u64,
    ) -> Result<Self> {
        let mut bytes = source.num_rows().saturating_mul(BYTES_PER_ROW);
        let columns: Vec<usize> = on.iter().chain(held).copied().collect();
        for batch in source.batches() {
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
            Self::One(source) => source.batches(),
            Self::Many(spill, _) => Box::new(spill.read(part)),
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
        self.waiting.flush_if_full(&mut self.spill)
    }

    /// Writes the buffered rows.
    pub fn finish(&mut self) -> Result<()> {
        self.waiting.flush(&mut self.spill)
    }

    /// The rows of a part.
    pub fn batches(&self, part: usize) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
        self.spill.read(part)
    }

    /// Bytes on disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.spill.bytes()
    }
}

/// The rows of each partition. Null keys, which match nothing, go to the first.
fn part_rows(keys: &Keys, parts: usize) -> Vec<Vec<u32>> {
    let mut rows = vec![Vec::new(); parts];
    for row in 0..keys.len() {
        // The upper bits choose the partition, since the lower ones choose the place in the key table.
        let part = keys.get(row).map_or(0, |key| ((key.hash() >> 32) * parts as u64) >> 32);
        if let (Some(rows), Ok(row)) = (rows.get_mut(usize::try_from(part).unwrap_or(0)), u32::try_from(row)) {
            rows.push(row);
        }
    }
    rows
}

/// Rows that are buffered before they are written to their partitions, so that blocks do not get small.
struct Waiting {
    parts: Vec<Vec<RecordBatch>>,
    bytes: u64,
    limit: u64,
}

impl Waiting {
    fn new(parts: usize, limit: u64) -> Self {
        Self {
            parts: vec![Vec::new(); parts],
            bytes: 0,
            limit,
        }
    }

    fn push(&mut self, part: usize, batch: &RecordBatch, rows: Vec<u32>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let taken =
            take_record_batch(batch, &UInt32Array::from(rows)).map_err(|e| TableError::invalid(e.to_string()))?;
        self.bytes = self.bytes.saturating_add(bytes_of(&taken));
        if let Some(waiting) = self.parts.get_mut(part) {
            waiting.push(taken);
        }
        Ok(())
    }

    fn flush_if_full(&mut self, spill: &mut Spill) -> Result<()> {
        if self.bytes > self.limit {
            self.flush(spill)?;
        }
        Ok(())
    }

    fn flush(&mut self, spill: &mut Spill) -> Result<()> {
        self.bytes = 0;
        for (part, waiting) in self.parts.iter_mut().enumerate() {
            let Some(first) = waiting.first() else { continue };
            let joined = arrow_select::concat::concat_batches(&first.schema(), waiting.iter());
            spill.write(part, &joined.map_err(|e| TableError::invalid(e.to_string()))?)?;
            waiting.clear();
        }
        Ok(())
    }
}

/// Some columns of a batch.
pub(super) fn project(batch: &RecordBatch, columns: &[usize]) -> Result<Vec<ArrayRef>> {
    let column = |index: &usize| batch.columns().get(*index).cloned();
    let found: Option<Vec<ArrayRef>> = columns.iter().map(column).collect();
    found.ok_or_else(|| TableError::invalid(format!("expected columns {columns:?}, found {}", batch.num_columns())))
}
