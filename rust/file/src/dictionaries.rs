//! Joins Arrow dictionaries of several pages or batches into one.
//!
//! Arrow's own `concat` removes duplicate items only approximately: an item may stay in twice, and a narrow key type may run out of keys
//! although the distinct items would fit. In that case items are compared exactly.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{make_array, Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_cast::{cast_with_options, CastOptions};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::interleave::interleave;
use hashbrown::HashMap;

use crate::error::FileError;
use crate::v2_0::flat::decode::byte_width;

/// The rows of all batches one after the other, with [`join`] for each column.
pub fn concat_batches(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch, ArrowError> {
    if batches.is_empty() {
        return Ok(RecordBatch::new_empty(schema.clone()));
    }
    let columns = (0..schema.fields().len()).map(|index| {
        let parts = batches.iter().filter_map(|batch| batch.columns().get(index).cloned());
        join(&parts.collect::<Vec<_>>())
    });
    let rows = batches.iter().map(|batch| batch.num_rows()).sum();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns.collect::<Result<_, _>>()?, &options)
}

/// Concatenates arrays. Their dictionaries become one with distinct items, unless all items fit as they are.
///
/// An error if the key type has too few keys for the items in use.
pub fn join(arrays: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let parts: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
    match concat(&parts) {
        Err(ArrowError::DictionaryKeyOverflowError) => join_exactly(arrays),
        joined => joined,
    }
}

/// A reader's error for items that do not fit into one array. It is no corruption, as each page may have its own dictionary.
pub(crate) fn too_many(data_type: &DataType, what: &str, error: &ArrowError) -> FileError {
    FileError::unsupported(format!(
        "{what}: the dictionaries of its pages do not fit into one of type {data_type} ({error}); read fewer rows at a time"
    ))
}

fn join_exactly(arrays: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let Some(data_type @ DataType::Dictionary(key_type, _)) = arrays.first().map(|array| array.data_type()) else {
        return Err(ArrowError::DictionaryKeyOverflowError);
    };
    let items: Vec<&ArrayRef> = arrays.iter().map(|array| array.as_any_dictionary().values()).collect();
    let comparable = items.iter().map(|items| Comparable::new(items));
    let comparable = comparable.collect::<Result<Vec<_>, _>>()?;
    // The first position of each distinct item, and the number of each by its bytes.
    let mut chosen: Vec<(usize, usize)> = Vec::new();
    let mut numbers: HashMap<Option<&[u8]>, u64> = HashMap::new();
    let mut keys: Vec<Option<u64>> = Vec::with_capacity(arrays.iter().map(|array| array.len()).sum());
    for (part, (array, items)) in arrays.iter().zip(&comparable).enumerate() {
        let dictionary = array.as_any_dictionary();
        if dictionary.values().is_empty() {
            keys.extend(std::iter::repeat_n(None, array.len()));
            continue;
        }
        for (row, item) in dictionary.normalized_keys().into_iter().enumerate() {
            keys.push(dictionary.keys().is_valid(row).then(|| {
                *numbers.entry(items.get(item)).or_insert_with(|| {
                    chosen.push((part, item));
                    (chosen.len() - 1) as u64
                })
            }));
        }
    }
    let items: Vec<&dyn Array> = items.iter().map(|items| items.as_ref()).collect();
    let items = interleave(&items, &chosen)?;
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let keys: ArrayRef = Arc::new(UInt64Array::from(keys));
    let keys = cast_with_options(&keys, key_type, &options).map_err(|_| ArrowError::DictionaryKeyOverflowError)?;
    let keys = keys.to_data();
    let joined = ArrayData::builder(data_type.clone())
        .len(keys.len())
        .buffers(keys.buffers().to_vec())
        .nulls(keys.nulls().cloned())
        .add_child_data(items.to_data())
        .build()?;
    Ok(make_array(joined))
}

/// Items by their bytes.
enum Comparable {
    Variable(ArrayRef),
    Fixed(ArrayData, usize),
}

impl Comparable {
    fn new(items: &ArrayRef) -> Result<Comparable, ArrowError> {
        match items.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
                let options = CastOptions::default();
                Ok(Comparable::Variable(cast_with_options(
                    items,
                    &DataType::LargeBinary,
                    &options,
                )?))
            }
            other => match byte_width(other).and_then(|width| usize::try_from(width).ok()) {
                Some(width) => Ok(Comparable::Fixed(items.to_data(), width)),
                None => Err(ArrowError::DictionaryKeyOverflowError),
            },
        }
    }

    /// The bytes of an item; none for a null.
    fn get(&self, index: usize) -> Option<&[u8]> {
        match self {
            Comparable::Variable(items) => items.is_valid(index).then(|| items.as_binary::<i64>().value(index)),
            Comparable::Fixed(items, width) => {
                let start = items.offset().checked_add(index)?.checked_mul(*width)?;
                let bytes = items.buffers().first()?.get(start..start.checked_add(*width)?);
                bytes.filter(|_| items.is_valid(index))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int8Type;
    use arrow_array::{DictionaryArray, Int8Array, StringArray};

    use super::*;

    fn keyed(keys: Vec<Option<i8>>, items: Vec<Option<String>>) -> ArrayRef {
        let items: ArrayRef = Arc::new(StringArray::from(items));
        Arc::new(DictionaryArray::<Int8Type>::new(Int8Array::from(keys), items))
    }

    #[test]
    fn test_a_narrow_key_type_holds_all_items_that_differ() {
        let items = |from: usize| {
            (0..120)
                .map(|i| Some(format!("item {}", (i + from) % 120)))
                .collect::<Vec<_>>()
        };
        let parts: Vec<ArrayRef> = (0..40)
            .map(|from| keyed((0..120).map(|key| (key != 7).then_some(key)).collect(), items(from)))
            .collect();
        let joined = join(&parts).unwrap();
        assert_eq!(joined.data_type(), parts[0].data_type());
        assert_eq!(joined.as_any_dictionary().values().len(), 120);
        let text = |array: &ArrayRef| cast_with_options(array, &DataType::Utf8, &CastOptions::default()).unwrap();
        for (number, part) in parts.iter().enumerate() {
            assert_eq!(&text(&joined.slice(number * 120, 120)), &text(part));
        }
    }

    #[test]
    fn test_more_items_than_keys_are_an_error() {
        let part = |from: usize| {
            let items = (from..from + 100).map(|i| Some(i.to_string())).collect();
            keyed((0..100).map(Some).collect(), items)
        };
        assert!(join(&[part(0), part(100)]).is_err());
        assert!(join(&[part(0), part(27)]).is_ok());
    }
}
