//! The source of a merge, held so that it can be read several times: by the passes of a merge, and by a retry.

use std::path::PathBuf;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;

use crate::error::{MergeError, Result};
use crate::quota::DiskQuota;
use crate::spill::Spill;

/// The approximate size of a block on disk, in bytes of rows.
pub const BLOCK_BYTES: usize = 4 << 20;

/// The most rows of a batch in memory.
const SLICE_ROWS: usize = 64 * 1024;

/// Rows that can be read any number of times.
#[derive(Debug)]
pub struct MergeSource {
    schema: SchemaRef,
    rows: u64,
    held: Held,
}

#[derive(Debug)]
enum Held {
    Memory(Vec<RecordBatch>),
    Disk(Spill),
}

impl MergeSource {
    /// Reads a stream to its end. Beyond `memory_limit` bytes it is spilled to a file in the folder for temporary files,
    /// which takes its bytes of `quota`.
    pub fn read(batches: Box<dyn RecordBatchReader + Send>, memory_limit: u64, quota: &DiskQuota) -> Result<Self> {
        let schema = batches.schema();
        let (mut rows, mut bytes) = (0_u64, 0_u64);
        let mut held = Held::Memory(Vec::new());
        for batch in batches {
            let batch = batch.map_err(|e| MergeError::invalid(format!("the input stream failed: {e}")))?;
            rows += batch.num_rows() as u64;
            bytes = bytes.saturating_add(bytes_of(&batch));
            if let (Held::Memory(kept), true) = (&mut held, bytes > memory_limit) {
                let mut spill = Spill::create(&spill_folder(), schema.clone(), 1)?.with_quota(quota);
                for batch in kept.drain(..) {
                    write(&mut spill, &batch)?;
                }
                held = Held::Disk(spill);
            }
            match &mut held {
                Held::Memory(kept) => kept.extend(slices(&batch)),
                Held::Disk(spill) => write(spill, &batch)?,
            }
        }
        Ok(Self { schema, rows, held })
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows there are.
    pub fn num_rows(&self) -> u64 {
        self.rows
    }

    /// Bytes on disk; 0 if all is in memory.
    pub fn spilled_bytes(&self) -> u64 {
        match &self.held {
            Held::Memory(_) => 0,
            Held::Disk(spill) => spill.bytes(),
        }
    }

    /// One of the batches that hold the rows, by its place; none beyond the last.
    pub fn nth(&self, place: usize) -> Option<Result<RecordBatch>> {
        match &self.held {
            Held::Memory(kept) => kept.get(place).cloned().map(Ok),
            Held::Disk(spill) => spill.nth(0, place),
        }
    }

    /// The rows, in their order.
    pub fn batches(&self) -> Box<dyn Iterator<Item = Result<RecordBatch>> + '_> {
        match &self.held {
            Held::Memory(kept) => Box::new(kept.iter().cloned().map(Ok)),
            Held::Disk(spill) => Box::new(spill.read(0)),
        }
    }
}

/// A batch in slices: between two of them a merge looks whether it is to stop.
fn slices(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> + '_ {
    let starts = (0..batch.num_rows()).step_by(SLICE_ROWS);
    starts.map(|start| batch.slice(start, SLICE_ROWS.min(batch.num_rows() - start)))
}

fn write(spill: &mut Spill, batch: &RecordBatch) -> Result<()> {
    let pieces = usize::try_from(bytes_of(batch))
        .unwrap_or(usize::MAX)
        .div_ceil(BLOCK_BYTES);
    let size = batch.num_rows().div_ceil(pieces.max(1)).max(1);
    for start in (0..batch.num_rows()).step_by(size) {
        spill.write(0, &batch.slice(start, size.min(batch.num_rows() - start)))?;
    }
    Ok(())
}

/// The bytes that the rows of a batch take, without unused parts of shared buffers.
pub fn bytes_of(batch: &RecordBatch) -> u64 {
    let columns = batch.columns().iter();
    let bytes = columns.map(|column| {
        column
            .to_data()
            .get_slice_memory_size()
            .unwrap_or_else(|_| column.get_array_memory_size())
    });
    bytes.map(|bytes| bytes as u64).sum()
}

/// Where temporary files go.
pub fn spill_folder() -> PathBuf {
    std::env::temp_dir()
}
