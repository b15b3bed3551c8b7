//! Assembles the rows to write: columns come from the source, or from the table's row where the source lacks them.

use std::sync::Arc;

use arrow_array::{new_null_array, Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, Field, Schema as ArrowSchema, SchemaRef};
use esker_file::schema::{BlobView, Schema};

use super::complete::{completed, fit, is_partial};
use super::pairs::Pair;
use crate::error::{Result, TableError};
use crate::manifest::Manifest;
use crate::read::{RowsByAddress, SystemColumn, TableFiles};

/// Where a column of a written row comes from.
#[derive(Debug, Clone, Copy)]
enum Origin {
    Source(usize),
    Target(usize),
    /// A struct of which the source has some fields and the table's row has the others.
    Both {
        source: usize,
        target: usize,
    },
}

/// Assembles rows to write.
#[derive(Debug)]
pub(super) struct Rewriter {
    schema: SchemaRef,
    origins: Vec<Origin>,
    /// Reads the columns that the source lacks in whole or in part; `None` if it has all.
    rest: Option<RowsByAddress>,
}

fn failed(error: ArrowError) -> TableError {
    TableError::invalid(format!("the rows to write cannot be put together: {error}"))
}

impl Rewriter {
    /// A rewriter for whole rows of a table, some of whose columns `source` has.
    pub fn new(files: &Arc<TableFiles>, manifest: &Manifest, table: &Schema, source: &ArrowSchema) -> Result<Self> {
        Self::of_columns(files, manifest, Arc::new(table.to_arrow()?), source)
    }

    /// A rewriter for only the columns that `source` has, structs completed.
    pub fn changes(files: &Arc<TableFiles>, manifest: &Manifest, table: &Schema, source: &ArrowSchema) -> Result<Self> {
        let table = table.to_arrow()?;
        let whole = source
            .fields()
            .iter()
            .map(|field| match table.field_with_name(field.name()) {
                Ok(known) if is_partial(field.data_type(), known.data_type()) => Arc::new(known.clone()),
                _ => field.clone(),
            });
        let schema = Arc::new(ArrowSchema::new(whole.collect::<Vec<_>>()));
        Self::of_columns(files, manifest, schema, source)
    }

    fn of_columns(
        files: &Arc<TableFiles>,
        manifest: &Manifest,
        schema: SchemaRef,
        source: &ArrowSchema,
    ) -> Result<Self> {
        let (mut origins, mut rest) = (Vec::new(), Vec::new());
        for field in schema.fields() {
            let own = source.index_of(field.name()).ok();
            let whole = own.filter(|column| !is_partial(source.field(*column).data_type(), field.data_type()));
            let target = rest.len();
            if whole.is_none() {
                rest.push(field.name().clone());
            }
            origins.push(match (whole, own) {
                (Some(column), _) => Origin::Source(column),
                (None, Some(source)) => Origin::Both { source, target },
                (None, None) => Origin::Target(target),
            });
        }
        let rows = |rest: &Vec<String>| RowsByAddress::new(files.clone(), manifest, rest, BlobView::Bytes);
        Ok(Self {
            schema,
            origins,
            rest: (!rest.is_empty()).then(|| rows(&rest)).transpose()?,
        })
    }

    /// The columns that are written.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Updated rows: rows of the table with the values of the matched rows of the source.
    pub async fn updated(&self, batch: &RecordBatch, rows: &UInt32Array, pairs: &[Pair]) -> Result<RecordBatch> {
        let rest = match &self.rest {
            Some(rest) => {
                let addresses: Vec<u64> = pairs.iter().map(|pair| pair.address).collect();
                Some(rest.take(&addresses).await?)
            }
            None => None,
        };
        let taken = take(batch, rows)?;
        let kept = |column: &usize| rest.as_ref().and_then(|rest| rest.columns().get(*column));
        self.batch(rows.len(), |origin, field| match origin {
            Origin::Source(column) => Ok(taken.columns().get(*column).cloned()),
            Origin::Target(column) => Ok(kept(column).and_then(|kept| fit(kept, field.data_type()))),
            Origin::Both { source, target } => match taken.columns().get(*source) {
                Some(given) => completed(given, kept(target), field).map(Some),
                None => Ok(None),
            },
        })
    }

    /// Inserted rows: rows of the source, with nulls in the columns and fields that it lacks.
    pub fn inserted(&self, batch: &RecordBatch, rows: &UInt32Array) -> Result<RecordBatch> {
        let taken = take(batch, rows)?;
        self.batch(rows.len(), |origin, field| match origin {
            Origin::Source(column) => Ok(taken.columns().get(*column).cloned()),
            Origin::Target(_) => Ok(Some(new_null_array(field.data_type(), rows.len()))),
            Origin::Both { source, .. } => match taken.columns().get(*source) {
                Some(given) => completed(given, None, field).map(Some),
                None => Ok(None),
            },
        })
    }

    fn batch(&self, rows: usize, column: impl Fn(&Origin, &Field) -> Result<Option<ArrayRef>>) -> Result<RecordBatch> {
        let origins = self.origins.iter().zip(self.schema.fields());
        let columns: Vec<ArrayRef> = origins
            .map(|(origin, field)| {
                column(origin, field)?
                    .ok_or_else(|| TableError::invalid("expected all columns of the rows to write, found fewer"))
            })
            .collect::<Result<_>>()?;
        // The nullability of nested fields may differ from the table's.
        let fields = self.schema.fields().iter().zip(&columns);
        let fields: Vec<Field> = fields
            .map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), columns, &options).map_err(failed)
    }
}

/// The schema of changed columns, with the column of row addresses.
pub(super) fn changed_schema(changes: &ArrowSchema) -> SchemaRef {
    let mut fields: Vec<Arc<Field>> = changes.fields().iter().cloned().collect();
    fields.push(SystemColumn::RowAddress.field());
    Arc::new(ArrowSchema::new(fields))
}

/// Changed columns with the addresses of the rows of the table that they change.
pub(super) fn changed(schema: &SchemaRef, changes: &RecordBatch, pairs: &[Pair]) -> Result<RecordBatch> {
    let mut columns = changes.columns().to_vec();
    columns.push(Arc::new(UInt64Array::from_iter_values(
        pairs.iter().map(|pair| pair.address),
    )));
    // The nullability of nested fields may differ from the source's.
    let fields = schema.fields().iter().zip(&columns);
    let fields: Vec<Field> = fields
        .map(|(field, column)| Field::clone(field).with_data_type(column.data_type().clone()))
        .collect();
    RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns).map_err(failed)
}

/// Rows of a batch: the batch itself if it is all of them, a slice if they are contiguous.
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
