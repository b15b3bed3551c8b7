//! A chunk of a scan: some rows of one fragment, filtered (late materialisation), as batches.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use esker_expr::Predicate;
use esker_file::Decoding;

use super::fragment_reader::FragmentProjection;
use super::rows::{count, select};
use super::system::{RowPlaces, SystemColumn};
use crate::error::{Result, TableError};

/// The cost of one more run of rows in a column, in bytes that could be read and filtered in the same time (measured: about 200 ns).
const RUN_COST: u64 = 1600;

/// Where an output column comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Output {
    /// One of the filter's columns.
    Filter(usize),
    /// Read only for the rows that the filter keeps.
    Other(usize),
    /// Not in any file.
    System(SystemColumn),
}

/// What all chunks of a scan share.
#[derive(Debug)]
pub(super) struct ChunkPlan {
    /// The schema of the batches that come out.
    pub(super) schema: SchemaRef,
    pub(super) filter: Option<Predicate>,
    /// The system columns that the filter reads.
    pub(super) filter_system: Vec<SystemColumn>,
    pub(super) outputs: Vec<Output>,
    pub(super) batch_size: Option<usize>,
}

/// The columns of one fragment that a scan reads.
#[derive(Debug)]
pub(super) struct ChunkSource {
    pub(super) places: RowPlaces,
    /// The filter's columns, if there is a filter.
    pub(super) filter_columns: Option<FragmentProjection>,
    /// The output columns that the filter does not read already.
    pub(super) other_columns: FragmentProjection,
    /// An estimate of the bytes per row of blobs outside of the fragment's own files.
    pub(super) blob_bytes_per_row: u64,
    /// Where columns are decoded: in the chunk's own task, where there are chunks enough.
    pub(super) decoding: Decoding,
}

/// Reads one chunk.
pub(super) async fn read_chunk(
    plan: &ChunkPlan,
    source: &ChunkSource,
    rows: Vec<Range<u64>>,
) -> Result<Vec<RecordBatch>> {
    let Some(filter) = &plan.filter else {
        let others = source.other_columns.read_by(&rows, source.decoding).await?;
        return split(plan, combine(plan, source, &rows, None, &others)?);
    };
    let (tested, mask) = test(plan, source, filter, &rows).await?;
    let kept = select(&rows, &mask);
    if kept.is_empty() {
        return Ok(Vec::new());
    }
    let others = read_kept(source, &rows, &kept, &mask).await?;
    let tested = keep(&tested, &mask)?;
    split(plan, combine(plan, source, &kept, Some(&tested), &others)?)
}

/// How many rows of a chunk the filter keeps.
pub(super) async fn count_chunk(plan: &ChunkPlan, source: &ChunkSource, rows: Vec<Range<u64>>) -> Result<u64> {
    match &plan.filter {
        Some(filter) => Ok(test(plan, source, filter, &rows).await?.1.true_count() as u64),
        None => Ok(count(&rows)),
    }
}

/// The filter's columns for some rows, and the filter's mask.
async fn test(
    plan: &ChunkPlan,
    source: &ChunkSource,
    filter: &Predicate,
    rows: &[Range<u64>],
) -> Result<(RecordBatch, BooleanArray)> {
    let columns = source.filter_columns.as_ref();
    let columns =
        columns.ok_or_else(|| TableError::invalid("expected the filter's columns to be planned, found none"))?;
    let mut tested = columns.read_by(rows, source.decoding).await?;
    if !plan.filter_system.is_empty() {
        let mut fields: Vec<_> = tested.schema_ref().fields().iter().cloned().collect();
        let mut arrays = tested.columns().to_vec();
        for column in &plan.filter_system {
            fields.push(column.field());
            arrays.push(source.places.values(*column, rows));
        }
        tested = batch_of(Arc::new(Schema::new(fields)), arrays, tested.num_rows())?;
    }
    let mask = filter.evaluate(&tested)?;
    Ok((tested, mask))
}

async fn read_kept(
    source: &ChunkSource,
    rows: &[Range<u64>],
    kept: &[Range<u64>],
    mask: &BooleanArray,
) -> Result<RecordBatch> {
    let others = &source.other_columns;
    let saved = (count(rows) - count(kept)).saturating_mul(others.bytes_per_row());
    let cost = (kept.len() as u64)
        .saturating_mul(others.num_columns())
        .saturating_mul(RUN_COST);
    if cost < saved || kept == rows {
        return others.read_by(kept, source.decoding).await;
    }
    keep(&others.read_by(rows, source.decoding).await?, mask)
}

fn keep(batch: &RecordBatch, mask: &BooleanArray) -> Result<RecordBatch> {
    if mask.true_count() == batch.num_rows() {
        return Ok(batch.clone());
    }
    arrow_select::filter::filter_record_batch(batch, mask).map_err(|e| TableError::invalid(e.to_string()))
}

fn combine(
    plan: &ChunkPlan,
    source: &ChunkSource,
    rows: &[Range<u64>],
    tested: Option<&RecordBatch>,
    others: &RecordBatch,
) -> Result<RecordBatch> {
    let arrays: Vec<ArrayRef> = plan
        .outputs
        .iter()
        .filter_map(|output| match output {
            Output::Filter(place) => tested?.columns().get(*place).cloned(),
            Output::Other(place) => others.columns().get(*place).cloned(),
            Output::System(column) => Some(source.places.values(*column, rows)),
        })
        .collect();
    batch_of(plan.schema.clone(), arrays, others.num_rows())
}

fn batch_of(schema: SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, arrays, &options).map_err(|e| TableError::invalid(e.to_string()))
}

fn split(plan: &ChunkPlan, batch: RecordBatch) -> Result<Vec<RecordBatch>> {
    let Some(size) = plan.batch_size.filter(|size| *size < batch.num_rows()) else {
        return Ok(vec![batch]);
    };
    let starts = (0..batch.num_rows()).step_by(size.max(1));
    Ok(starts
        .map(|start| batch.slice(start, size.min(batch.num_rows() - start)))
        .collect())
}
