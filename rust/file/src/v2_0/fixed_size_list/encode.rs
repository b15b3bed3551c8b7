//! Writing fixed-size lists: the items of all lists as one array.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::array_encoding::ArrayEncoding as Kind;

use crate::error::{FileError, Result};
use crate::v2_0::encode::{encode_nullable, encoding, PageBuffers};
use crate::v2_0::nullable::encode::all_nulls;

/// Encodes lists of one length. What stands at a null list is written as it is.
pub(crate) fn encode(arrays: &[ArrayRef], out: &mut PageBuffers) -> Result<pb::ArrayEncoding> {
    let first = arrays
        .first()
        .ok_or_else(|| FileError::invalid("expected at least one array to encode, found none"))?;
    let list = first.as_fixed_size_list();
    let dimension = u32::try_from(list.value_length()).map_err(|_| {
        FileError::invalid(format!(
            "expected a list size of 0 or more, found {}",
            list.value_length()
        ))
    })?;
    let item_type = list.value_type();
    // The items of a sliced array are sliced as well.
    let items: Vec<ArrayRef> = arrays.iter().map(|a| a.as_fixed_size_list().values().clone()).collect();
    let null_count: usize = items.iter().map(|a| a.null_count()).sum();
    let values = match item_type.is_null() {
        true => all_nulls(),
        false => encode_nullable(&items, &item_type, null_count, out)?,
    };
    Ok(encoding(Kind::FixedSizeList(Box::new(pb::FixedSizeList {
        dimension,
        items: Some(Box::new(values)),
        has_validity: false,
    }))))
}
