//! The order of a scan's rows: all of them are held, or the first ones only where there is a limit.
//!
//! Keys are compared as bytes that sort as they do (`arrow_row`), so that a sort of all rows and the first of them follow one rule: numbers
//! by their total order (-NaN, -inf, ..., -0.0, 0.0, ..., inf, NaN), lists and structs item by item, nulls before or behind all values.
//! Rows with equal keys stay in the table's order.

use std::collections::BTreeMap;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_row::{Row, RowConverter, Rows, SortField};
use arrow_schema::{ArrowError, Schema, SchemaRef, SortOptions};
use arrow_select::interleave::interleave;
use futures::stream::{self, StreamExt, TryStreamExt};
use std::sync::Arc;

use super::scan::BatchStream;
use crate::error::{Result, TableError};

/// Rows of a batch that comes out, where no other size is asked for.
const BATCH_ROWS: usize = 8192;

/// Rows that are held beyond those that a limit keeps, before the others are let go.
const SPARE_ROWS: usize = 1 << 16;

/// One key of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderKey {
    /// A column or a dotted path.
    pub column: String,
    /// Smallest first.
    pub ascending: bool,
    /// Nulls before all values rather than behind them.
    pub nulls_first: bool,
}

impl OrderKey {
    fn options(&self) -> SortOptions {
        SortOptions::new(!self.ascending, self.nulls_first)
    }
}

/// Which rows of an order come out, and in batches of which size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub(super) offset: u64,
    pub(super) limit: Option<u64>,
    pub(super) batch_size: Option<usize>,
}

/// A row by its batch and its place there.
type Place = (usize, usize);

/// The rows of a stream in an order.
///
/// `keys` are the columns of the stream to order by, by their numbers; the first `width` columns come out.
pub(super) fn ordered(
    unordered: BatchStream,
    keys: &[OrderKey],
    places: Vec<usize>,
    width: usize,
    cut: Cut,
) -> Result<BatchStream> {
    let mut held = HeldRows::new(&unordered.schema, keys, places, cut)?;
    let fields = unordered.schema.fields().iter().take(width).cloned();
    let schema = Arc::new(Schema::new_with_metadata(
        fields.collect::<Vec<_>>(),
        unordered.schema.metadata().clone(),
    ));
    let shown = schema.clone();
    let mut batches = unordered.batches;
    let sorted = async move {
        while let Some(batch) = batches.try_next().await? {
            held.push(batch)?;
        }
        Ok::<_, TableError>(stream::iter(held.into_batches(shown, cut)))
    };
    Ok(BatchStream {
        schema,
        batches: stream::once(sorted).try_flatten().boxed(),
        groups: unordered.groups,
    })
}

/// Rows that may come out, with their keys.
struct HeldRows {
    converter: RowConverter,
    places: Vec<usize>,
    batches: Vec<RecordBatch>,
    keys: Vec<Rows>,
    count: usize,
    /// How many of the first rows are needed at all.
    wanted: usize,
}

impl HeldRows {
    fn new(schema: &Schema, keys: &[OrderKey], places: Vec<usize>, cut: Cut) -> Result<Self> {
        let mut fields = Vec::with_capacity(keys.len());
        for (key, place) in keys.iter().zip(&places) {
            let field = schema.fields().get(*place);
            let field =
                field.ok_or_else(|| TableError::invalid(format!("expected a column '{}' to order by", key.column)))?;
            let sort = SortField::new_with_options(field.data_type().clone(), key.options());
            if !RowConverter::supports_fields(std::slice::from_ref(&sort)) {
                return Err(TableError::unsupported(format!(
                    "column '{}' of type {} has no order, leave it out of order_by",
                    key.column,
                    field.data_type()
                )));
            }
            fields.push(sort);
        }
        let wanted = cut.limit.map(|limit| limit.saturating_add(cut.offset));
        Ok(Self {
            converter: RowConverter::new(fields).map_err(failed)?,
            places,
            batches: Vec::new(),
            keys: Vec::new(),
            count: 0,
            wanted: wanted.map_or(usize::MAX, |rows| usize::try_from(rows).unwrap_or(usize::MAX)),
        })
    }

    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        self.add(batch)?;
        if self.count
            > self
                .wanted
                .saturating_mul(2)
                .max(self.wanted.saturating_add(SPARE_ROWS))
        {
            self.forget()?;
        }
        Ok(())
    }

    fn add(&mut self, batch: RecordBatch) -> Result<()> {
        let columns: Vec<ArrayRef> = self
            .places
            .iter()
            .filter_map(|place| batch.columns().get(*place).cloned())
            .collect();
        self.keys
            .push(self.converter.convert_columns(&columns).map_err(failed)?);
        self.count += batch.num_rows();
        self.batches.push(batch);
        Ok(())
    }

    /// Keeps the first rows only.
    fn forget(&mut self) -> Result<()> {
        let first = self.first();
        let Some(schema) = self.batches.first().map(RecordBatch::schema) else {
            return Ok(());
        };
        let mut kept = Vec::new();
        for places in first.chunks(BATCH_ROWS) {
            kept.extend(gather(&self.batches, &schema, places)?);
        }
        self.batches.clear();
        self.keys.clear();
        self.count = 0;
        kept.into_iter().try_for_each(|batch| self.add(batch))
    }

    /// The first rows in their order.
    fn first(&self) -> Vec<Place> {
        let mut rows: Vec<(Row<'_>, Place)> = Vec::with_capacity(self.count);
        for (number, keys) in self.keys.iter().enumerate() {
            rows.extend(keys.iter().enumerate().map(|(row, key)| (key, (number, row))));
        }
        if self.wanted < rows.len() {
            rows.select_nth_unstable(self.wanted);
            rows.truncate(self.wanted);
        }
        // Places differ, so that no two are equal: the order is stable.
        rows.sort_unstable();
        rows.into_iter().map(|(_, place)| place).collect()
    }

    fn into_batches(self, schema: SchemaRef, cut: Cut) -> impl Iterator<Item = Result<RecordBatch>> {
        let mut places = self.first();
        let skipped = usize::try_from(cut.offset).unwrap_or(usize::MAX).min(places.len());
        places.drain(..skipped);
        let batches = self.batches;
        let size = cut.batch_size.unwrap_or(BATCH_ROWS).max(1);
        let starts = (0..places.len()).step_by(size);
        starts.flat_map(move |start| {
            let rows: Vec<Place> = places.iter().skip(start).take(size).copied().collect();
            match gather(&batches, &schema, &rows) {
                Ok(gathered) => gathered.into_iter().map(Ok).collect::<Vec<_>>(),
                Err(error) => vec![Err(error)],
            }
        })
    }
}

/// Rows of many batches as one batch of the first columns, those of `schema`; as more than one where their dictionaries together have more
/// values than keys can name, or their texts more bytes than offsets reach.
fn gather(batches: &[RecordBatch], schema: &SchemaRef, places: &[Place]) -> Result<Vec<RecordBatch>> {
    match gather_one(batches, schema, places) {
        Ok(batch) => Ok(vec![batch]),
        Err(ArrowError::DictionaryKeyOverflowError | ArrowError::OffsetOverflowError(_)) if places.len() > 1 => {
            let (left, right) = places.split_at(places.len() / 2);
            let mut parts = gather(batches, schema, left)?;
            parts.extend(gather(batches, schema, right)?);
            Ok(parts)
        }
        Err(error) => Err(failed(error)),
    }
}

fn gather_one(batches: &[RecordBatch], schema: &SchemaRef, places: &[Place]) -> Result<RecordBatch, ArrowError> {
    // Only those that rows are taken from: a batch more is a dictionary more to be merged.
    let mut used: BTreeMap<usize, usize> = places.iter().map(|(batch, _)| (*batch, 0)).collect();
    used.values_mut()
        .enumerate()
        .for_each(|(number, place)| *place = number);
    let rows: Vec<Place> = places
        .iter()
        .filter_map(|(batch, row)| Some((*used.get(batch)?, *row)))
        .collect();
    let from: Vec<&RecordBatch> = used.keys().filter_map(|batch| batches.get(*batch)).collect();
    let columns = (0..schema.fields().len()).map(|column| {
        let values: Vec<&dyn Array> = from
            .iter()
            .filter_map(|batch| batch.columns().get(column).map(AsRef::as_ref))
            .collect();
        interleave(&values, &rows)
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}

fn failed(error: ArrowError) -> TableError {
    TableError::unsupported(format!("rows cannot be put in order: {error}"))
}
