//! Copies buffered values, so that they do not keep the batch alive that they came with.
//!
//! All columns of an imported batch share one owner: a few bytes kept of one column keep every column of the batch alive. So values that
//! wait for their page to fill are copied, and values that fill a page at once are not.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{make_array, Array, ArrayRef, GenericListArray, NullArray, OffsetSizeTrait};
use arrow_data::transform::MutableArrayData;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};

/// The same values in memory of their own, no more of it than they need.
pub(crate) fn copied(array: &ArrayRef) -> ArrayRef {
    make_array(copied_data(&array.to_data()))
}

fn copied_data(data: &ArrayData) -> ArrayData {
    if matches!(data.data_type(), DataType::Null) {
        return data.clone();
    }
    let mut copy = MutableArrayData::new(vec![data], false, data.len());
    if copy.try_extend(0, 0, data.len()).is_err() {
        return data.clone();
    }
    let copy = copy.freeze();
    if !matches!(data.data_type(), DataType::Dictionary(_, _)) {
        return copy;
    }
    // The keys are new, but the dictionary itself is still the batch's.
    let values: Vec<ArrayData> = copy.child_data().iter().map(copied_data).collect();
    copy.clone().into_builder().child_data(values).build().unwrap_or(copy)
}

/// The lists without their items: offsets and validity are all that the list's own column holds.
pub(crate) fn without_items<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> ArrayRef {
    let end = list.value_offsets().last().map_or(0, |o| o.as_usize());
    let item = Arc::new(Field::new("item", DataType::Null, true));
    let nothing = Arc::new(NullArray::new(end));
    let bare = GenericListArray::<O>::try_new(item, list.offsets().clone(), nothing, list.nulls().cloned());
    bare.map_or_else(
        |_| Arc::new(list.clone()) as ArrayRef,
        |bare| Arc::new(bare) as ArrayRef,
    )
}

/// [`without_items`] for a list of either offset width.
pub(crate) fn bare_list(array: &ArrayRef, large: bool) -> ArrayRef {
    if large {
        without_items(array.as_list::<i64>())
    } else {
        without_items(array.as_list::<i32>())
    }
}
