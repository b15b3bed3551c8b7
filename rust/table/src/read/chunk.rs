//! One chunk of a scan: some rows of one fragment, filtered, as batches.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_schema::SchemaRef;
use esker_expr::Predicate;

use super::fragment_reader::FragmentProjection;
use super::rows::{count, select};
use crate::deletion::DeletionVector;
use crate::error::{Result, TableError};

/// What one more run of rows costs in one column, in bytes that could be read and filtered in the same time (measured: about 200 ns).
const RUN_COST: u64 = 1600;

/// What every chunk of a scan shares.
#[derive(Debug)]
pub(super) struct ChunkPlan {
    /// The schema of the batches that come out, row id and address included.
    pub(super) schema: SchemaRef,
    pub(super) filter: Option<Predicate>,
    /// For each output column its place among the filter's columns, where it is one of them.
    pub(super) from_filter: Vec<Option<usize>>,
    pub(super) with_row_id: bool,
    pub(super) with_row_address: bool,
    pub(super) batch_size: Option<usize>,
}

/// The columns of one fragment that a scan reads.
#[derive(Debug)]
pub(super) struct ChunkSource {
    pub(super) fragment_id: u64,
    /// The filter's columns, where there is a filter.
    pub(super) filter_columns: Option<FragmentProjection>,
    /// All output columns, or those that the filter does not read already.
    pub(super) other_columns: FragmentProjection,
    /// Rows that come although they are deleted, without a number.
    pub(super) deleted: Option<DeletionVector>,
}

/// Reads one chunk.
pub(super) async fn read_chunk(
    plan: &ChunkPlan,
    source: &ChunkSource,
    rows: Vec<Range<u64>>,
) -> Result<Vec<RecordBatch>> {
    let (rows, batch) = match (&plan.filter, &source.filter_columns) {
        (Some(filter), Some(columns)) => {
            let tested = columns.read(&rows).await?;
            let mask = filter.evaluate(&tested)?;
            let kept = select(&rows, &mask);
            if kept.is_empty() {
                return Ok(Vec::new());
            }
            let others = read_kept(source, &rows, &kept, &mask).await?;
            let tested = keep(&tested, &mask)?;
            (kept, combine(plan, &tested, &others)?)
        }
        _ => {
            let batch = source.other_columns.read(&rows).await?;
            (rows, batch)
        }
    };
    split(plan, with_row_numbers(plan, source, &rows, &batch)?)
}

/// How many rows of a chunk the filter keeps.
pub(super) async fn count_chunk(plan: &ChunkPlan, source: &ChunkSource, rows: Vec<Range<u64>>) -> Result<u64> {
    match (&plan.filter, &source.filter_columns) {
        (Some(filter), Some(columns)) => Ok(filter.evaluate(&columns.read(&rows).await?)?.true_count() as u64),
        _ => Ok(count(&rows)),
    }
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
        return others.read(kept).await;
    }
    keep(&source.other_columns.read(rows).await?, mask)
}

fn keep(batch: &RecordBatch, mask: &BooleanArray) -> Result<RecordBatch> {
    if mask.true_count() == batch.num_rows() {
        return Ok(batch.clone());
    }
    arrow_select::filter::filter_record_batch(batch, mask).map_err(|e| TableError::invalid(e.to_string()))
}

fn combine(plan: &ChunkPlan, tested: &RecordBatch, others: &RecordBatch) -> Result<RecordBatch> {
    let mut rest = others.columns().iter();
    let arrays: Vec<ArrayRef> = plan
        .from_filter
        .iter()
        .filter_map(|place| match place {
            Some(place) => tested.columns().get(*place).cloned(),
            None => rest.next().cloned(),
        })
        .collect();
    let fields: Vec<_> = plan.schema.fields().iter().take(arrays.len()).cloned().collect();
    let options = RecordBatchOptions::new().with_row_count(Some(tested.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(arrow_schema::Schema::new(fields)), arrays, &options)
        .map_err(|e| TableError::invalid(e.to_string()))
}

fn with_row_numbers(
    plan: &ChunkPlan,
    source: &ChunkSource,
    rows: &[Range<u64>],
    batch: &RecordBatch,
) -> Result<RecordBatch> {
    let mut arrays = batch.columns().to_vec();
    if plan.with_row_id || plan.with_row_address {
        let base = source.fragment_id << 32;
        let offsets = rows.iter().flat_map(Range::clone);
        let addresses: ArrayRef = Arc::new(match &source.deleted {
            None => UInt64Array::from_iter_values(offsets.map(|offset| base | offset)),
            Some(deleted) => offsets
                .map(|offset| (!is_deleted(deleted, offset)).then_some(base | offset))
                .collect(),
        });
        // Without stable row ids a row's id is its address.
        if plan.with_row_id {
            arrays.push(addresses.clone());
        }
        if plan.with_row_address {
            arrays.push(addresses);
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(plan.schema.clone(), arrays, &options)
        .map_err(|e| TableError::invalid(e.to_string()))
}

fn is_deleted(deleted: &DeletionVector, offset: u64) -> bool {
    u32::try_from(offset).is_ok_and(|offset| deleted.rows().contains(offset))
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
