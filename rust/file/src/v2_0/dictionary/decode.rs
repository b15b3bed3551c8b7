//! Reads dictionaries: all items (cached for the next read), and the keys of the rows.

use arrow_array::types::{
    ArrowDictionaryKeyType, Int16Type, Int32Type, Int64Type, Int8Type, UInt16Type, UInt32Type, UInt64Type, UInt8Type,
};
use arrow_array::{
    make_array, Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, DictionaryArray, PrimitiveArray, UInt32Array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use esker_proto::lance::encodings as pb;

use crate::error::Result;
use crate::v2_0::decode;
use crate::v2_0::fixed_width::FixedWidth;
use crate::v2_0::page::{PageContext, Rows};

/// Decodes `rows` of a dictionary-encoded page.
pub(crate) async fn decode(
    page: &PageContext<'_>,
    dictionary: &pb::Dictionary,
    data_type: &DataType,
    rows: Rows<'_>,
) -> Result<ArrayData> {
    if let DataType::Dictionary(key, value) = data_type {
        let items = items(page, dictionary, value).await?;
        let keys = decode::decode(page, dictionary.indices.as_deref(), key, rows).await?;
        return match key.as_ref() {
            DataType::Int8 => keyed::<Int8Type>(page, keys, items),
            DataType::Int16 => keyed::<Int16Type>(page, keys, items),
            DataType::Int32 => keyed::<Int32Type>(page, keys, items),
            DataType::Int64 => keyed::<Int64Type>(page, keys, items),
            DataType::UInt8 => keyed::<UInt8Type>(page, keys, items),
            DataType::UInt16 => keyed::<UInt16Type>(page, keys, items),
            DataType::UInt32 => keyed::<UInt32Type>(page, keys, items),
            DataType::UInt64 => keyed::<UInt64Type>(page, keys, items),
            other => Err(page.corrupt(format!("expected integer dictionary keys, found {other}"))),
        };
    }
    let items = items(page, dictionary, data_type).await?;
    let width = FixedWidth::of(page, dictionary.indices.as_deref(), "dictionary indices")?.bits();
    let index_type = match width {
        8 => DataType::UInt8,
        16 => DataType::UInt16,
        32 => DataType::UInt32,
        other => {
            return Err(page.corrupt(format!(
                "expected dictionary indices of 8, 16 or 32 bits, found {other}"
            )))
        }
    };
    let indices = decode::decode(page, dictionary.indices.as_deref(), &index_type, rows).await?;
    let indices = match index_type {
        DataType::UInt8 => from_one::<UInt8Type>(page, indices, items.len())?,
        DataType::UInt16 => from_one::<UInt16Type>(page, indices, items.len())?,
        _ => from_one::<UInt32Type>(page, indices, items.len())?,
    };
    let values = arrow_select::take::take(items.as_ref(), &indices, None).map_err(|e| page.corrupt(e))?;
    Ok(values.into_data())
}

/// The page's distinct values, read once and kept.
async fn items(page: &PageContext<'_>, dictionary: &pb::Dictionary, data_type: &DataType) -> Result<ArrayRef> {
    if let Some(items) = page.file.kept_dictionary(page.column, page.number) {
        if items.data_type() == data_type {
            return Ok(items);
        }
    }
    let num_items = u64::from(dictionary.num_dictionary_items);
    // No item takes less than a bit: more items than the file has bits are corrupt, and would cost memory.
    if num_items > page.file.size().saturating_mul(8) {
        return Err(page.corrupt(format!(
            "expected a dictionary that fits in the file, found {num_items} items"
        )));
    }
    let whole = 0..num_items;
    let rows = [whole];
    let items = make_array(decode::decode(page, dictionary.items.as_deref(), data_type, &rows).await?);
    page.file.keep_dictionary(page.column, page.number, &items);
    Ok(items)
}

/// Keys that count from 1, as positions that count from 0 with nulls.
fn from_one<T>(page: &PageContext<'_>, indices: ArrayData, num_items: usize) -> Result<UInt32Array>
where
    T: ArrowPrimitiveType,
    T::Native: Into<u32>,
{
    let indices = PrimitiveArray::<T>::from(indices);
    let mut largest = 0_u32;
    let mut any_null = false;
    let positions: Vec<u32> = indices
        .values()
        .iter()
        .map(|&index| {
            let index: u32 = index.into();
            largest = largest.max(index);
            any_null |= index == 0;
            index.saturating_sub(1)
        })
        .collect();
    if largest as usize > num_items {
        return Err(page.corrupt(format!(
            "expected dictionary indices up to {num_items}, found {largest}"
        )));
    }
    let nulls = any_null.then(|| {
        NullBuffer::new(BooleanBuffer::collect_bool(indices.len(), |i| {
            indices.values().get(i).is_some_and(|v| !v.is_zero())
        }))
    });
    Ok(UInt32Array::new(positions.into(), nulls))
}

/// A dictionary array whose nulls are in its keys.
fn keyed<K: ArrowDictionaryKeyType>(page: &PageContext<'_>, keys: ArrayData, items: ArrayRef) -> Result<ArrayData> {
    let mut keys = PrimitiveArray::<K>::from(keys);
    if items.null_count() > 0 {
        let is_there = |key: &K::Native| {
            key.to_usize()
                .is_none_or(|key| key >= items.len() || items.is_valid(key))
        };
        let validity = BooleanBuffer::collect_bool(keys.len(), |i| keys.values().get(i).is_some_and(is_there));
        let nulls = NullBuffer::union(Some(&NullBuffer::new(validity)), keys.nulls());
        keys = PrimitiveArray::new(keys.values().clone(), nulls);
    }
    let array = DictionaryArray::<K>::try_new(keys, items).map_err(|e| page.corrupt(e))?;
    Ok(array.into_data())
}
