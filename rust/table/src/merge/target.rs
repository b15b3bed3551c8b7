//! The target side: the keys of all rows of the table, a batch at a time.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::clauses::WhenNotMatchedBySource;
use super::pairs::Pair;
use crate::error::{Result, TableError};
use crate::manifest::Manifest;
use crate::read::{ScanRequest, SystemColumn};
use esker_merge::KeyEncoder;
use esker_merge::KeyTable;

/// Marks rows that are deleted unless a row of the source matches them.
const GOES: &str = "_goes";

/// How the table's keys are read.
#[derive(Debug, Clone)]
pub(super) struct TargetKeys {
    on: Vec<String>,
    stable_row_ids: bool,
    by_source: WhenNotMatchedBySource,
}

/// A batch of the table's rows: keys, addresses and ids.
#[derive(Debug, Clone)]
pub(super) struct TargetBatch {
    pub keys: Vec<ArrayRef>,
    pub addresses: UInt64Array,
    pub ids: Option<UInt64Array>,
    /// Which rows are deleted unless a row of the source matches them.
    pub goes: Option<BooleanArray>,
}

impl TargetKeys {
    pub fn new(manifest: &Manifest, on: &[String], by_source: WhenNotMatchedBySource) -> Self {
        Self {
            on: on.to_vec(),
            stable_row_ids: manifest.has_stable_row_ids(),
            by_source,
        }
    }

    /// The scan of the keys, and of the columns that decide about rows that no row of the source matches.
    pub fn scan(&self) -> ScanRequest {
        let mut columns = self.on.clone();
        if let WhenNotMatchedBySource::DeleteIf(predicate) = &self.by_source {
            let more = predicate.columns().iter().filter(|name| !self.on.contains(name));
            let ours = |name: &&String| SystemColumn::named(name).is_some_and(|column| self.adds(column));
            columns.extend(more.filter(|name| !ours(name)).cloned());
        }
        ScanRequest {
            columns: Some(columns),
            with_row_id: self.adds(SystemColumn::RowId),
            with_row_address: self.adds(SystemColumn::RowAddress),
            unordered: true,
            ..ScanRequest::default()
        }
    }

    /// Whether the scan adds that system column.
    fn adds(&self, column: SystemColumn) -> bool {
        column == SystemColumn::RowAddress || (column == SystemColumn::RowId && self.stable_row_ids)
    }

    /// Decodes a batch of that scan.
    pub fn read(&self, batch: &RecordBatch) -> Result<TargetBatch> {
        let goes = match &self.by_source {
            WhenNotMatchedBySource::Keep => None,
            WhenNotMatchedBySource::Delete => Some(BooleanArray::from(vec![true; batch.num_rows()])),
            WhenNotMatchedBySource::DeleteIf(predicate) => Some(predicate.evaluate(batch)?),
        };
        let ids = self
            .stable_row_ids
            .then(|| numbers(batch, SystemColumn::RowId))
            .transpose()?;
        Ok(TargetBatch {
            keys: self.keys(batch)?,
            addresses: numbers(batch, SystemColumn::RowAddress)?,
            ids,
            goes,
        })
    }

    fn keys(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let column = |name: &String| batch.column_by_name(name).cloned();
        self.on
            .iter()
            .map(|name| column(name).ok_or_else(|| lost(name)))
            .collect()
    }

    /// The schema of batches on disk.
    pub fn spill_schema(&self, key_types: &[DataType]) -> SchemaRef {
        let numbered = self.on.iter().zip(key_types);
        let mut fields: Vec<Field> = numbered.map(|(name, of)| Field::new(name, of.clone(), true)).collect();
        fields.push(Field::new(SystemColumn::RowAddress.name(), DataType::UInt64, true));
        fields.push(Field::new(SystemColumn::RowId.name(), DataType::UInt64, true));
        fields.push(Field::new(GOES, DataType::Boolean, true));
        Schema::new(fields).into()
    }

    /// A batch in the form in which it is spilled.
    pub fn to_spill(&self, batch: &TargetBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let rows = batch.addresses.len();
        let ids = batch.ids.clone().unwrap_or_else(|| batch.addresses.clone());
        let goes = batch
            .goes
            .clone()
            .unwrap_or_else(|| BooleanArray::from(vec![false; rows]));
        let mut columns = batch.keys.clone();
        columns.extend([
            Arc::new(batch.addresses.clone()) as ArrayRef,
            Arc::new(ids),
            Arc::new(goes),
        ]);
        RecordBatch::try_new(schema.clone(), columns).map_err(|e| TableError::invalid(e.to_string()))
    }

    /// The inverse of [`Self::to_spill`].
    pub fn read_spill(&self, batch: &RecordBatch) -> Result<TargetBatch> {
        Ok(TargetBatch {
            keys: self.keys(batch)?,
            addresses: numbers(batch, SystemColumn::RowAddress)?,
            ids: Some(numbers(batch, SystemColumn::RowId)?),
            goes: batch
                .column_by_name(GOES)
                .and_then(|column| column.as_boolean_opt().cloned()),
        })
    }
}

fn lost(name: &str) -> TableError {
    TableError::corrupt(
        "merge",
        format!("expected column {name} in a batch of keys, found none"),
    )
}

fn numbers(batch: &RecordBatch, column: SystemColumn) -> Result<UInt64Array> {
    let found = batch.column_by_name(column.name());
    let found = found.and_then(|array| array.as_primitive_opt::<UInt64Type>().cloned());
    found.ok_or_else(|| lost(column.name()))
}

/// The matches of a batch of the table.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// Matched pairs; those of one row of the table are adjacent, in the source's order.
    pub pairs: Vec<Pair>,
    /// Rows of the table to delete because no row of the source matches them.
    pub gone: Vec<u64>,
    /// Rows that were scanned.
    pub rows: u64,
}

impl Matches {
    /// Adds what another batch found.
    pub fn add(&mut self, more: Self) {
        self.pairs.extend(more.pairs);
        self.gone.extend(more.gone);
        self.rows += more.rows;
    }
}

/// Looks up the keys of a batch of the table.
pub(super) fn find(batch: &TargetBatch, encoder: &KeyEncoder, table: &KeyTable) -> Result<Matches> {
    let keys = encoder.encode(&batch.keys)?;
    let mut out = Matches {
        rows: keys.len() as u64,
        ..Matches::default()
    };
    let addresses = batch.addresses.values();
    let mut unmatched = batch
        .goes
        .as_ref()
        .map(|goes| goes.iter().map(|goes| goes == Some(true)).collect::<Vec<_>>());
    for row in table.candidates(&keys) {
        let (Some(key), Some(address)) = (keys.get(row), addresses.get(row).copied()) else {
            continue;
        };
        let before = out.pairs.len();
        let id = batch.ids.as_ref().and_then(|ids| ids.values().get(row).copied());
        let id = id.unwrap_or(address);
        let matched = table.rows_of(key);
        out.pairs.extend(matched.map(|source| Pair { source, address, id }));
        let slot = unmatched.as_mut().and_then(|unmatched| unmatched.get_mut(row));
        if let (Some(slot), true) = (slot, out.pairs.len() > before) {
            *slot = false;
        }
    }
    let gone = addresses.iter().zip(unmatched.iter().flatten());
    out.gone
        .extend(gone.filter(|(_, goes)| **goes).map(|(address, _)| *address));
    Ok(out)
}
