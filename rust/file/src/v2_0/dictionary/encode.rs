//! Writing dictionaries: found in plain strings, or brought along by Arrow.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Int16Type, Int32Type, Int64Type, Int8Type, UInt16Type, UInt32Type, UInt64Type, UInt8Type,
};
use arrow_array::{new_null_array, Array, ArrayRef, PrimitiveArray};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;
use bytes::Bytes;
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::array_encoding::ArrayEncoding as Kind;
use hashbrown::HashMap;

use crate::dictionaries;
use crate::error::{FileError, Result};
use crate::v2_0::encode::{self, encoding, PageBuffers};
use crate::v2_0::flat;
use crate::v2_0::nullable::encode::wrap;

/// The most distinct strings that one-byte indices name; 0 is the null.
const MAX_DISTINCT: usize = 255;

/// Below so many rows a dictionary is not worth its second read.
const MIN_ROWS: usize = 100;

/// The distinct strings of a page, and for each row its index, counted from 1; 0 is null.
pub(crate) struct Distinct {
    items: ArrayRef,
    indices: Vec<u8>,
}

/// Finds the distinct strings of a page; nothing where a dictionary would not be smaller.
pub(crate) fn distinct(arrays: &[ArrayRef], num_values: usize) -> Option<Distinct> {
    if num_values < MIN_ROWS {
        return None;
    }
    let mut index_of: HashMap<&str, u8> = HashMap::with_capacity(MAX_DISTINCT);
    let mut items = StringBuilder::new();
    let mut indices = Vec::with_capacity(num_values);
    let (mut item_bytes, mut value_bytes) = (0_usize, 0_usize);
    for array in arrays {
        for value in array.as_string::<i32>() {
            let Some(value) = value else {
                indices.push(0);
                continue;
            };
            value_bytes += value.len();
            if let Some(index) = index_of.get(value) {
                indices.push(*index);
                continue;
            }
            let index = u8::try_from(index_of.len() + 1)
                .ok()
                .filter(|i| usize::from(*i) <= MAX_DISTINCT)?;
            index_of.insert(value, index);
            items.append_value(value);
            item_bytes += value.len() + 8;
            indices.push(index);
        }
    }
    let (small, plain) = (num_values + item_bytes, num_values * 8 + value_bytes);
    (small < plain).then(|| Distinct {
        items: Arc::new(items.finish()),
        indices,
    })
}

/// Encodes plain strings by the dictionary that was found in them.
pub(crate) fn encode_strings(found: &Distinct, out: &mut PageBuffers) -> Result<pb::ArrayEncoding> {
    let indices = flat::encode::flat(8, out.add(vec![Bytes::from(found.indices.clone())]));
    let items = super::super::binary::encode::encode(std::slice::from_ref(&found.items), &DataType::Utf8, None, out)?;
    dictionary(wrap(None, indices), items, found.items.len())
}

fn dictionary(indices: pb::ArrayEncoding, items: pb::ArrayEncoding, num_items: usize) -> Result<pb::ArrayEncoding> {
    let num_dictionary_items = u32::try_from(num_items).map_err(|_| {
        FileError::invalid(format!(
            "a page's dictionary cannot hold {num_items} items; cast the column to plain values"
        ))
    })?;
    Ok(encoding(Kind::Dictionary(Box::new(pb::Dictionary {
        indices: Some(Box::new(indices)),
        items: Some(Box::new(items)),
        num_dictionary_items,
    }))))
}

/// Encodes Arrow dictionaries in their own key width.
pub(crate) fn encode_arrow(column: &str, arrays: &[ArrayRef], out: &mut PageBuffers) -> Result<pb::ArrayEncoding> {
    let failed = |e: arrow_schema::ArrowError| {
        FileError::invalid(format!(
            "column '{column}': the dictionaries of the batches do not fit into one ({e}); use a wider key type or plain values"
        ))
    };
    let joined = dictionaries::join(arrays).map_err(failed)?;
    let DataType::Dictionary(key, _) = joined.data_type() else {
        return Err(FileError::invalid(format!(
            "expected a dictionary, found {}",
            joined.data_type()
        )));
    };
    match key.as_ref() {
        DataType::Int8 => encode_keys::<Int8Type>(column, &joined, out),
        DataType::Int16 => encode_keys::<Int16Type>(column, &joined, out),
        DataType::Int32 => encode_keys::<Int32Type>(column, &joined, out),
        DataType::Int64 => encode_keys::<Int64Type>(column, &joined, out),
        DataType::UInt8 => encode_keys::<UInt8Type>(column, &joined, out),
        DataType::UInt16 => encode_keys::<UInt16Type>(column, &joined, out),
        DataType::UInt32 => encode_keys::<UInt32Type>(column, &joined, out),
        DataType::UInt64 => encode_keys::<UInt64Type>(column, &joined, out),
        other => Err(FileError::invalid(format!(
            "column '{column}': expected integer dictionary keys, found {other}"
        ))),
    }
}

fn encode_keys<K: ArrowDictionaryKeyType>(
    column: &str,
    array: &ArrayRef,
    out: &mut PageBuffers,
) -> Result<pb::ArrayEncoding> {
    let array = array.as_dictionary::<K>();
    let mut items = array.values().clone();
    let mut keys = array.keys().clone();
    if keys.null_count() > 0 {
        // A null is a key to an item that is null itself.
        let null_at = (0..items.len()).find(|&i| items.is_null(i)).unwrap_or(items.len());
        if null_at == items.len() {
            let null = new_null_array(items.data_type(), 1);
            items = arrow_select::concat::concat(&[items.as_ref(), null.as_ref()])
                .map_err(|e| FileError::invalid(format!("column '{column}': {e}")))?;
        }
        let null_key = K::Native::from_usize(null_at).filter(|key| key.to_usize() == Some(null_at)).ok_or_else(|| {
            FileError::invalid(format!(
                "column '{column}': expected room in the dictionary for one more item, the null, found all keys in use; use a wider key type"
            ))
        })?;
        let filled: Vec<K::Native> = keys.iter().map(|key| key.unwrap_or(null_key)).collect();
        keys = PrimitiveArray::new(filled.into(), None);
    }
    let keys: ArrayRef = Arc::new(keys);
    let indices = encode::encode_nullable(std::slice::from_ref(&keys), keys.data_type(), 0, out)?;
    let num_items = items.len();
    let items = match items.data_type().clone() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
            super::super::binary::encode::encode(std::slice::from_ref(&items), items.data_type(), None, out)?
        }
        other => {
            let nulls = items.null_count();
            encode::encode_nullable(std::slice::from_ref(&items), &other, nulls, out)?
        }
    };
    dictionary(indices, items, num_items)
}
