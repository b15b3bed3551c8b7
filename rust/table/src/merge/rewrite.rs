//! Rows as they are written: in the table's columns, taken from the source, and from the table where the source has none.

use std::sync::Arc;

use arrow_array::{
    new_null_array, Array, ArrayRef, RecordBatch, RecordBatchOptions, StructArray, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema as ArrowSchema, SchemaRef};
use esker_file::schema::{BlobView, Schema};

use super::pairs::Pair;
use crate::error::{Result, TableError};
use crate::manifest::Manifest;
use crate::read::{RowsByAddress, SystemColumn, TableFiles};

/// Where a column of a written row comes from.
#[derive(Debug, Clone, Copy)]
enum Origin {
    Source(usize),
    Target(usize),
}

/// Makes rows to write.
#[derive(Debug)]
pub(super) struct Rewriter {
    schema: SchemaRef,
    origins: Vec<Origin>,
    /// The columns that the source lacks; nothing if it has all.
    rest: Option<RowsByAddress>,
}

fn failed(error: ArrowError) -> TableError {
    TableError::invalid(format!("the rows to write cannot be put together: {error}"))
}

impl Rewriter {
    /// For rows of `source` in a table.
    pub fn new(files: &Arc<TableFiles>, manifest: &Manifest, table: &Schema, source: &ArrowSchema) -> Result<Self> {
        let (mut origins, mut rest) = (Vec::new(), Vec::new());
        for field in &table.fields {
            origins.push(match source.index_of(&field.name) {
                Ok(column) => Origin::Source(column),
                Err(_) => {
                    rest.push(field.name.clone());
                    Origin::Target(rest.len() - 1)
                }
            });
        }
        let rows = |rest: &Vec<String>| RowsByAddress::new(files.clone(), manifest, rest, BlobView::Bytes);
        Ok(Self {
            schema: Arc::new(table.to_arrow()?),
            origins,
            rest: (!rest.is_empty()).then(|| rows(&rest)).transpose()?,
        })
    }

    /// The columns that are written.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Rows of the table with the values of rows of the source in place of theirs.
    pub async fn updated(&self, batch: &RecordBatch, rows: &UInt32Array, pairs: &[Pair]) -> Result<RecordBatch> {
        let rest = match &self.rest {
            Some(rest) => {
                let addresses: Vec<u64> = pairs.iter().map(|pair| pair.address).collect();
                Some(rest.take(&addresses).await?)
            }
            None => None,
        };
        let taken = take(batch, rows)?;
        let column = |(origin, field): (&Origin, &Arc<Field>)| match origin {
            Origin::Source(column) => taken.columns().get(*column).cloned(),
            Origin::Target(column) => fit(rest.as_ref()?.columns().get(*column)?, field.data_type()),
        };
        self.batch(rows.len(), column)
    }

    /// Rows of the source, with nulls in the columns that it lacks.
    pub fn inserted(&self, batch: &RecordBatch, rows: &UInt32Array) -> Result<RecordBatch> {
        let taken = take(batch, rows)?;
        let column = |(origin, field): (&Origin, &Arc<Field>)| match origin {
            Origin::Source(column) => taken.columns().get(*column).cloned(),
            Origin::Target(_) => Some(new_null_array(field.data_type(), rows.len())),
        };
        self.batch(rows.len(), column)
    }

    fn batch(&self, rows: usize, column: impl Fn((&Origin, &Arc<Field>)) -> Option<ArrayRef>) -> Result<RecordBatch> {
        let columns: Option<Vec<ArrayRef>> = self.origins.iter().zip(self.schema.fields()).map(column).collect();
        let columns =
            columns.ok_or_else(|| TableError::invalid("expected all columns of the rows to write, found fewer"))?;
        // Nested fields may promise other things about nulls than the table's.
        let fields = self.schema.fields().iter().zip(&columns);
        let fields: Vec<Field> = fields
            .map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), columns, &options).map_err(failed)
    }
}

/// The columns of changed rows of a source, with the addresses of the rows of the table that they change.
pub(super) fn changed_schema(source: &ArrowSchema) -> SchemaRef {
    let mut fields: Vec<Arc<Field>> = source.fields().iter().cloned().collect();
    fields.push(SystemColumn::RowAddress.field());
    Arc::new(ArrowSchema::new(fields))
}

/// Changed rows of a source with those addresses.
pub(super) fn changed(
    schema: &SchemaRef,
    batch: &RecordBatch,
    rows: &UInt32Array,
    pairs: &[Pair],
) -> Result<RecordBatch> {
    let mut columns = take(batch, rows)?.columns().to_vec();
    columns.push(Arc::new(UInt64Array::from_iter_values(
        pairs.iter().map(|pair| pair.address),
    )));
    RecordBatch::try_new(schema.clone(), columns).map_err(failed)
}

/// Rows of a batch; the batch itself where it is all of them, and a slice where they lie together.
fn take(batch: &RecordBatch, rows: &UInt32Array) -> Result<RecordBatch> {
    let first = rows.values().first().copied().unwrap_or(0);
    let together = rows
        .values()
        .windows(2)
        .all(|pair| matches!(pair, [a, b] if a.checked_add(1) == Some(*b)));
    if together {
        return Ok(batch.slice(first as usize, rows.len()));
    }
    arrow_select::take::take_record_batch(batch, rows).map_err(failed)
}

/// A column as it was read, in the form in which it is written: blobs come as bytes and go as a struct that has room for a URI.
fn fit(column: &ArrayRef, wanted: &DataType) -> Option<ArrayRef> {
    match wanted {
        _ if column.data_type().equals_datatype(wanted) => Some(column.clone()),
        DataType::Struct(fields) if !matches!(column.data_type(), DataType::Struct(_)) => {
            let child = |field: &Arc<Field>| match field.name().as_str() {
                "data" => fit(column, field.data_type()),
                _ => Some(new_null_array(field.data_type(), column.len())),
            };
            let children = fields.iter().map(child).collect::<Option<Vec<_>>>()?;
            let blobs = StructArray::try_new(fields.clone(), children, column.logical_nulls()).ok()?;
            Some(Arc::new(blobs))
        }
        _ => arrow_cast::cast(column, wanted).ok(),
    }
}
