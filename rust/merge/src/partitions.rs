//! Partitions of rows: by the hash of a key, or as a caller numbers them. Beyond a limit they lie on disk.

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::take::take_record_batch;

use crate::error::{MergeError, Result};
use crate::keys::Keys;
use crate::quota::DiskQuota;
use crate::source::{bytes_of, spill_folder};
use crate::spill::Spill;

/// Rows by partition, in the order in which they came: in memory up to a limit, beyond it in one file on disk.
#[derive(Debug)]
pub struct RowPartitions {
    schema: SchemaRef,
    waiting: Waiting,
    spill: Option<Spill>,
    rows: Vec<u64>,
    quota: DiskQuota,
}

impl RowPartitions {
    /// Empty partitions. `memory_limit` is bytes.
    pub fn new(schema: SchemaRef, parts: usize, memory_limit: u64, quota: &DiskQuota) -> Self {
        let parts = parts.max(1);
        Self {
            schema,
            waiting: Waiting::new(parts, memory_limit),
            spill: None,
            rows: vec![0; parts],
            quota: quota.clone(),
        }
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows each partition has.
    pub fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// Bytes on disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.spill.as_ref().map_or(0, Spill::bytes)
    }

    /// Adds rows, each to the partition that its key's hash names.
    pub fn push_by_key(&mut self, batch: &RecordBatch, keys: &Keys) -> Result<()> {
        if keys.len() != batch.num_rows() {
            return Err(MergeError::invalid(
                "expected a key for each row, found another number of them",
            ));
        }
        self.push_all(batch, part_rows(keys, self.rows.len()))
    }

    /// Adds all rows of a batch to one partition.
    pub fn push_to(&mut self, batch: &RecordBatch, part: usize) -> Result<()> {
        let count = self.rows.get_mut(part);
        let count = count.ok_or_else(|| MergeError::invalid(format!("there is no partition {part}")))?;
        *count += batch.num_rows() as u64;
        self.waiting.add(part, batch.clone());
        self.flush_if_full()
    }

    fn push_all(&mut self, batch: &RecordBatch, rows: Vec<Vec<u32>>) -> Result<()> {
        for (part, rows) in rows.into_iter().enumerate() {
            if let Some(count) = self.rows.get_mut(part) {
                *count += rows.len() as u64;
            }
            self.waiting.push(part, batch, rows)?;
        }
        self.flush_if_full()
    }

    fn flush_if_full(&mut self) -> Result<()> {
        if self.waiting.is_full() {
            let spill = match &mut self.spill {
                Some(spill) => spill,
                empty => empty.insert(
                    Spill::create(&spill_folder(), self.schema.clone(), self.rows.len())?.with_quota(&self.quota),
                ),
            };
            self.waiting.flush(spill)?;
        }
        Ok(())
    }

    /// The rows of a partition.
    pub fn read(&self, part: usize) -> Result<Vec<RecordBatch>> {
        let mut found = Vec::new();
        if let Some(spill) = &self.spill {
            for batch in spill.read(part) {
                found.push(batch?);
            }
        }
        found.extend(self.waiting.of(part).iter().cloned());
        Ok(found)
    }
}

/// The rows of each partition. Null keys, which match nothing, go to the first.
pub fn part_rows(keys: &Keys, parts: usize) -> Vec<Vec<u32>> {
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
#[derive(Debug)]
pub struct Waiting {
    parts: Vec<Vec<RecordBatch>>,
    bytes: u64,
    limit: u64,
}

impl Waiting {
    /// Empty partitions; `limit` is bytes.
    pub fn new(parts: usize, limit: u64) -> Self {
        Self {
            parts: vec![Vec::new(); parts],
            bytes: 0,
            limit,
        }
    }

    /// Adds some rows of a batch to a partition.
    pub fn push(&mut self, part: usize, batch: &RecordBatch, rows: Vec<u32>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let taken =
            take_record_batch(batch, &UInt32Array::from(rows)).map_err(|e| MergeError::invalid(e.to_string()))?;
        self.add(part, taken);
        Ok(())
    }

    /// Adds a batch to a partition.
    pub fn add(&mut self, part: usize, batch: RecordBatch) {
        self.bytes = self.bytes.saturating_add(bytes_of(&batch));
        if let Some(waiting) = self.parts.get_mut(part) {
            waiting.push(batch);
        }
    }

    /// The rows of a partition that wait.
    pub fn of(&self, part: usize) -> &[RecordBatch] {
        self.parts.get(part).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether as much waits as may.
    pub fn is_full(&self) -> bool {
        self.bytes > self.limit
    }

    /// Writes what waits, if that is too much.
    pub fn flush_if_full(&mut self, spill: &mut Spill) -> Result<()> {
        if self.is_full() {
            self.flush(spill)?;
        }
        Ok(())
    }

    /// Writes what waits.
    pub fn flush(&mut self, spill: &mut Spill) -> Result<()> {
        self.bytes = 0;
        for (part, waiting) in self.parts.iter_mut().enumerate() {
            let Some(first) = waiting.first() else { continue };
            let joined = arrow_select::concat::concat_batches(&first.schema(), waiting.iter());
            spill.write(part, &joined.map_err(|e| MergeError::invalid(e.to_string()))?)?;
            waiting.clear();
        }
        Ok(())
    }
}
