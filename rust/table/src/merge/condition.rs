//! Evaluates conditions on matched pairs of rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{ArrowError, Field, Fields};
use arrow_select::interleave::interleave;

use super::clauses::UpdateCondition;
use super::pairs::Pair;
use crate::error::{Result, TableError};
use crate::read::RowsByAddress;
use crate::struct_parts::without_hidden;

/// Pairs that are evaluated at a time.
const PAIRS: usize = 16 * 1024;

fn failed(error: ArrowError) -> TableError {
    TableError::invalid(format!("the condition cannot be evaluated: {error}"))
}

/// The source's columns that a condition reads, for one partition.
#[derive(Debug, Default)]
pub(super) struct ConditionRows {
    batches: Vec<RecordBatch>,
    /// The number of the first row of each batch.
    first: Vec<u32>,
    rows: u32,
}

impl ConditionRows {
    /// Adds the columns of the next batch.
    pub fn push(&mut self, batch: RecordBatch) {
        self.first.push(self.rows);
        self.rows = self
            .rows
            .saturating_add(u32::try_from(batch.num_rows()).unwrap_or(u32::MAX));
        self.batches.push(batch);
    }

    fn rows_of(&self, pairs: &[Pair]) -> Result<StructArray> {
        let place = |pair: &Pair| {
            let batch = self
                .first
                .partition_point(|first| *first <= pair.source)
                .saturating_sub(1);
            let first = self.first.get(batch).copied().unwrap_or(0);
            (batch, (pair.source - first) as usize)
        };
        let Some(schema) = self.batches.first().map(RecordBatch::schema) else {
            return Ok(StructArray::new_empty_fields(pairs.len(), None));
        };
        let places: Vec<(usize, usize)> = pairs.iter().map(place).collect();
        let columns = (0..schema.fields().len()).map(|column| {
            let arrays: Vec<&dyn arrow_array::Array> = self
                .batches
                .iter()
                .filter_map(|batch| batch.columns().get(column))
                .map(AsRef::as_ref)
                .collect();
            interleave(&arrays, &places).map_err(failed)
        });
        structs(schema.fields(), columns.collect::<Result<_>>()?, pairs.len())
    }
}

fn structs(fields: &Fields, columns: Vec<ArrayRef>, rows: usize) -> Result<StructArray> {
    let columns = columns.iter().map(|column| without_hidden(column).map_err(failed));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let fields: Fields = fields
        .iter()
        .zip(&columns)
        .map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true))
        .collect();
    if fields.is_empty() {
        return Ok(StructArray::new_empty_fields(rows, None));
    }
    StructArray::try_new(fields, columns, None).map_err(failed)
}

/// The pairs for which the condition is true, in their order. `target` has the table's columns that it reads, if it reads any.
pub(super) async fn keep(
    condition: &UpdateCondition,
    pairs: &[Pair],
    source: &ConditionRows,
    target: Option<&RowsByAddress>,
) -> Result<Vec<Pair>> {
    let mut kept = Vec::new();
    for pairs in pairs.chunks(PAIRS) {
        let addresses: Vec<u64> = pairs.iter().map(|pair| pair.address).collect();
        let left = source.rows_of(pairs)?;
        let right = match target {
            Some(target) => {
                let rows = target.take(&addresses).await?;
                structs(rows.schema().fields(), rows.columns().to_vec(), pairs.len())?
            }
            None => StructArray::new_empty_fields(pairs.len(), None),
        };
        let both: [(&str, ArrayRef); 2] = [("source", Arc::new(left)), ("target", Arc::new(right))];
        let batch = RecordBatch::try_from_iter(both).map_err(failed)?;
        let verdict = condition.predicate.evaluate(&batch)?;
        let chosen = pairs
            .iter()
            .zip(verdict.iter())
            .filter(|(_, verdict)| *verdict == Some(true));
        kept.extend(chosen.map(|(pair, _)| *pair));
    }
    Ok(kept)
}
