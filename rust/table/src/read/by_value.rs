//! Conditions on a column of few values, asked of each value once: rows are looked up by the number of their value.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, UInt16Type, UInt32Type, UInt8Type};
use arrow_array::{new_null_array, Array, ArrayRef, DictionaryArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions};
use arrow_buffer::{ArrowNativeType, BooleanBuffer};
use arrow_schema::{DataType, Schema, SchemaRef};

use super::steps::Step;
use crate::error::{Result, TableError};

/// The rows for which a step is true, where `batch` has its column as keys and values; `tested` has the type of the column.
pub(super) fn mask(step: &Step, batch: &RecordBatch, tested: &SchemaRef) -> Result<Option<BooleanBuffer>> {
    let ([column], [place], true) = (batch.columns(), step.places.as_slice(), step.is_by_value()) else {
        return Ok(None);
    };
    let field = tested
        .fields()
        .get(*place)
        .filter(|field| column.data_type() != field.data_type());
    let (Some(field), DataType::Dictionary(key, _)) = (field, column.data_type()) else {
        return Ok(None);
    };
    let schema = Arc::new(Schema::new(vec![field.as_ref().clone().with_nullable(true)]));
    let ask = |values: ArrayRef| -> Result<Vec<bool>> {
        let options = RecordBatchOptions::new().with_row_count(Some(values.len()));
        let batch = RecordBatch::try_new_with_options(schema.clone(), vec![values], &options)
            .map_err(|e| TableError::invalid(e.to_string()))?;
        let found = step.predicate.evaluate(&batch)?;
        Ok(found.iter().map(|found| found == Some(true)).collect())
    };
    let truths = ask(column.as_any_dictionary().values().clone())?;
    let of_null = match column.null_count() {
        0 => false,
        _ => ask(new_null_array(field.data_type(), 1))?.first() == Some(&true),
    };
    Ok(match key.as_ref() {
        DataType::UInt8 => Some(look_up::<UInt8Type>(column.as_dictionary(), &truths, of_null)),
        DataType::UInt16 => Some(look_up::<UInt16Type>(column.as_dictionary(), &truths, of_null)),
        DataType::UInt32 => Some(look_up::<UInt32Type>(column.as_dictionary(), &truths, of_null)),
        _ => None,
    })
}

/// What is true of each row, as it is of its value or of null.
fn look_up<K: ArrowDictionaryKeyType>(column: &DictionaryArray<K>, truths: &[bool], of_null: bool) -> BooleanBuffer {
    let keys = column.keys().values();
    let truth = |row: usize| {
        let key = keys.get(row).map(|key| key.as_usize());
        key.and_then(|key| truths.get(key)).copied().unwrap_or(false)
    };
    let found = BooleanBuffer::collect_bool(keys.len(), truth);
    match (column.keys().nulls(), of_null) {
        (None, _) => found,
        (Some(nulls), false) => &found & nulls.inner(),
        (Some(nulls), true) => &found | &!nulls.inner(),
    }
}

/// Of keys to so few bytes nobody looks what each stands for.
const LITTLE: usize = 1 << 20;

/// The bytes of memory of a column, as plain values where it came as keys and values. Of a view or a slice more may be in memory than it
/// shows.
pub(super) fn plain_bytes(column: &ArrayRef) -> usize {
    let Some(keyed) = column.as_any_dictionary_opt() else {
        return column.get_array_memory_size();
    };
    let lengths = match keyed.values().data_type() {
        DataType::Utf8 => lengths(keyed.values().as_string::<i32>().offsets()),
        DataType::LargeUtf8 => lengths(keyed.values().as_string::<i64>().offsets()),
        DataType::Binary => lengths(keyed.values().as_binary::<i32>().offsets()),
        DataType::LargeBinary => lengths(keyed.values().as_binary::<i64>().offsets()),
        other => return keyed.len().saturating_mul(other.primitive_width().unwrap_or(0)),
    };
    let most = lengths.iter().max().copied().unwrap_or(0).saturating_mul(keyed.len());
    if most <= LITTLE {
        return most;
    }
    let bytes = keyed.normalized_keys();
    let bytes = bytes.into_iter().map(|key| lengths.get(key).copied().unwrap_or(0));
    bytes.fold(0, usize::saturating_add)
}

fn lengths<O: OffsetSizeTrait>(offsets: &[O]) -> Vec<usize> {
    let ends = offsets.iter().skip(1);
    let lengths = ends
        .zip(offsets)
        .map(|(end, start)| end.as_usize().saturating_sub(start.as_usize()));
    lengths.collect()
}

/// A column as one of `data_type`, where it may have come as keys and values.
pub(super) fn plain(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if column.data_type() == data_type {
        return Ok(column.clone());
    }
    let Some(keyed) = column.as_any_dictionary_opt() else {
        return Err(TableError::invalid(format!(
            "expected values of type {data_type}, found {}",
            column.data_type()
        )));
    };
    arrow_select::take::take(keyed.values(), keyed.keys(), None).map_err(|e| TableError::invalid(e.to_string()))
}
