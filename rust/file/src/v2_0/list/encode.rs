//! Writing the offsets of lists; the items go to columns of their own.

use arrow_array::{Array, ArrayRef, GenericListArray, OffsetSizeTrait};
use bytes::Bytes;
use esker_codec::ends::{encode_ends, Offset};
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::array_encoding::ArrayEncoding as Kind;

use crate::v2_0::encode::{encoding, PageBuffers};
use crate::v2_0::flat::encode::flat;
use crate::v2_0::nullable::encode::wrap;

/// The items of a list array that its lists span, null lists included.
pub(crate) fn spanned_items<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> ArrayRef {
    let first = list.value_offsets().first().map_or(0, |o| o.as_usize());
    let last = list.value_offsets().last().map_or(first, |o| o.as_usize());
    list.values().slice(first, last - first)
}

/// Encodes the offsets of the lists of one page.
pub(crate) fn encode_offsets<O: OffsetSizeTrait + Offset>(
    lists: &[&GenericListArray<O>],
    out: &mut PageBuffers,
) -> pb::ArrayEncoding {
    let num_items: u64 = lists
        .iter()
        .map(|list| {
            let (first, last) = (list.value_offsets().first(), list.value_offsets().last());
            last.map_or(0, |o| o.to_u64()) - first.map_or(0, |o| o.to_u64())
        })
        .sum();
    let null_offset_adjustment = num_items.saturating_add(1);
    let mut ends = Vec::with_capacity(lists.iter().map(|l| l.len()).sum::<usize>().saturating_mul(8));
    let mut end = 0;
    for list in lists {
        let is_valid = |index: usize| list.is_valid(index);
        let is_valid: Option<&dyn Fn(usize) -> bool> = if list.null_count() > 0 { Some(&is_valid) } else { None };
        end = encode_ends(list.value_offsets(), end, null_offset_adjustment, is_valid, &mut ends);
    }
    let offsets = wrap(None, flat(64, out.add(vec![Bytes::from(ends)])));
    encoding(Kind::List(Box::new(pb::List {
        offsets: Some(Box::new(offsets)),
        null_offset_adjustment,
        num_items,
    })))
}
