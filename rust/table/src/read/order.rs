//! Sorts a scan's rows: all of them are held in memory, or only the first ones if there is a limit (top k).
//!
//! Keys are compared in `arrow_row`'s comparable form, with and without a limit: numbers by their total order (-NaN, -inf, ..., -0.0, 0.0,
//! ..., inf, NaN), lists and structs item by item, nulls first or last. The sort is stable: rows with equal keys stay in the table's order.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_row::{Row, RowConverter, Rows, SortField};
use arrow_schema::{ArrowError, Schema, SchemaRef, SortOptions};
use arrow_select::interleave::interleave;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::scan::BatchStream;
use crate::error::{Result, TableError};

/// The default number of rows in an output batch.
const BATCH_ROWS: usize = 8192;

/// Rows that are held beyond the limit before the held rows are cut down to it.
const SPARE_ROWS: usize = 1 << 16;

/// One key of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderKey {
    /// A column or a dotted path.
    pub column: String,
    /// Smallest first.
    pub ascending: bool,
    /// Whether nulls come first.
    pub nulls_first: bool,
}

impl OrderKey {
    fn options(&self) -> SortOptions {
        SortOptions::new(!self.ascending, self.nulls_first)
    }
}

/// Offset, limit and batch size of the output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub(super) offset: u64,
    pub(super) limit: Option<u64>,
    pub(super) batch_size: Option<usize>,
}

/// A row: the index of its batch, and its index there.
type Place = (usize, usize);

/// Sorts the rows of a stream.
///
/// `keys` name the key columns by their index in the stream; the first `width` columns are the output.
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
    /// How many of the first rows are needed.
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

    /// Drops all but the first rows.
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
        // Places are compared, too, so that the order is stable.
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

/// Gathers rows of many batches into one batch of `schema`; into several if the merged dictionaries have more items than the keys can name,
/// or the texts more bytes than the offsets reach.
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
    // Only the batches that rows are taken from, as each adds a dictionary to merge.
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

#[cfg(test)]
mod tests {
    use arrow_array::types::{Float64Type, Int8Type};
    use arrow_array::{DictionaryArray, Float64Array, Int64Array, StringArray};
    use esker_store::block_on;
    use futures::stream;

    use super::*;

    fn key(ascending: bool, nulls_first: bool) -> OrderKey {
        OrderKey {
            column: "x".into(),
            ascending,
            nulls_first,
        }
    }

    /// Batches of a key and of a number that counts the rows.
    fn numbered(keys: Vec<ArrayRef>) -> BatchStream {
        let mut next = 0;
        let batches: Vec<RecordBatch> = keys
            .into_iter()
            .map(|keys| {
                let ids: Int64Array = (next..next + keys.len() as i64).collect();
                next += keys.len() as i64;
                RecordBatch::try_from_iter_with_nullable([("id", Arc::new(ids) as ArrayRef, false), ("x", keys, true)])
                    .unwrap()
            })
            .collect();
        BatchStream {
            schema: batches[0].schema(),
            batches: stream::iter(batches.into_iter().map(Ok)).boxed(),
            groups: Arc::default(),
        }
    }

    fn sorted(keys: Vec<ArrayRef>, key: OrderKey, width: usize, cut: Cut) -> Vec<RecordBatch> {
        let stream = ordered(numbered(keys), &[key], vec![1], width, cut).unwrap();
        block_on::<_, TableError>(stream.batches.try_collect()).unwrap()
    }

    fn ids(batches: &[RecordBatch]) -> Vec<i64> {
        let columns = batches
            .iter()
            .map(|batch| batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap());
        columns.flat_map(|ids| ids.values().to_vec()).collect()
    }

    const ALL: Cut = Cut {
        offset: 0,
        limit: None,
        batch_size: None,
    };

    fn floats() -> Vec<ArrayRef> {
        let values = [
            Some(1.0),
            Some(f64::NAN),
            None,
            Some(-0.0),
            Some(0.0),
            Some(-f64::NAN),
            Some(-0.0),
            None,
            Some(f64::INFINITY),
        ];
        values
            .chunks(4)
            .map(|part| Arc::new(part.iter().copied().collect::<Float64Array>()) as ArrayRef)
            .collect()
    }

    #[test]
    fn numbers_go_by_their_total_order() {
        assert_eq!(
            ids(&sorted(floats(), key(true, true), 1, ALL)),
            [2, 7, 5, 3, 6, 4, 0, 8, 1]
        );
        assert_eq!(
            ids(&sorted(floats(), key(true, false), 1, ALL)),
            [5, 3, 6, 4, 0, 8, 1, 2, 7]
        );
        assert_eq!(
            ids(&sorted(floats(), key(false, true), 1, ALL)),
            [2, 7, 1, 8, 0, 4, 3, 6, 5]
        );
        assert_eq!(
            ids(&sorted(floats(), key(false, false), 1, ALL)),
            [1, 8, 0, 4, 3, 6, 5, 2, 7]
        );
    }

    #[test]
    fn the_first_rows_are_those_of_the_whole_order() {
        // More rows than are held, with keys that repeat.
        let parts: Vec<ArrayRef> = (0..5)
            .map(|part| {
                let keys = (0..40_000).map(|row| f64::from((row * 7 + part) % 1000));
                Arc::new(arrow_array::PrimitiveArray::<Float64Type>::from_iter_values(keys)) as ArrayRef
            })
            .collect();
        let whole = ids(&sorted(parts.clone(), key(false, false), 2, ALL));
        for (offset, limit) in [(0, 1), (0, 300), (250, 9000), (199_990, 100)] {
            let cut = Cut {
                offset,
                limit: Some(limit),
                batch_size: Some(100),
            };
            let first = sorted(parts.clone(), key(false, false), 2, cut);
            assert!(first
                .iter()
                .all(|batch| batch.num_rows() <= 100 && batch.num_columns() == 2));
            let expected = whole.iter().skip(offset as usize).take(limit as usize);
            assert_eq!(ids(&first), expected.copied().collect::<Vec<_>>());
        }
    }

    #[test]
    fn batches_are_as_small_as_the_keys_of_dictionaries_ask_for() {
        let part = |first: usize| {
            let values: Vec<String> = (first..first + 100).map(|number| format!("{number:03}")).collect();
            let keys = (0..100_i8).collect::<arrow_array::PrimitiveArray<Int8Type>>();
            Arc::new(DictionaryArray::new(keys, Arc::new(StringArray::from(values)))) as ArrayRef
        };
        let batches = sorted(vec![part(200), part(0), part(100)], key(true, true), 2, ALL);
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 300);
        let expected: Vec<i64> = (100..300).chain(0..100).collect();
        assert_eq!(ids(&batches), expected);
    }
}
