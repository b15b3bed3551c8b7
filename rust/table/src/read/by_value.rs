//! Conditions on a column of few values, asked of each value once: rows are looked up by the number of their value.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, UInt16Type, UInt32Type, UInt8Type};
use arrow_array::{new_null_array, Array, ArrayRef, DictionaryArray, RecordBatch, RecordBatchOptions};
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
