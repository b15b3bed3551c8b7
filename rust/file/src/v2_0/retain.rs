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

/// Arrays of one type in memory of their own from the one at `start` up to `end`, no more of it than they need. A dictionary that equals that
/// of the array before is not there twice.
pub(crate) fn own(arrays: &mut [ArrayRef], start: usize, end: usize) {
    let mut before = start.checked_sub(1).and_then(|last| arrays.get(last)).cloned();
    for array in arrays.iter_mut().take(end).skip(start) {
        let (shared, _) = sharing(array, before.as_ref());
        let items = before.as_ref().and_then(items_of).filter(|items| {
            let own = items_of(&shared);
            own.is_some_and(|own| own.ptr_eq(items))
        });
        *array = make_array(copied_data(&shared.to_data(), items.as_ref()));
        before = Some(array.clone());
    }
}

/// The items of an array of a dictionary type.
fn items_of(array: &ArrayRef) -> Option<ArrayData> {
    let items = array.as_any_dictionary_opt()?.values();
    Some(items.to_data())
}

/// The same values with the dictionary of the array before, where it has the same items, and the bytes of the items if it has others.
pub(crate) fn sharing(array: &ArrayRef, before: Option<&ArrayRef>) -> (ArrayRef, u64) {
    let (Some(items), Some(known)) = (items_of(array), before.and_then(items_of)) else {
        return (array.clone(), 0);
    };
    if items.ptr_eq(&known) {
        return (array.clone(), 0);
    }
    if items.len() == known.len() && items == known {
        let keyed = array.to_data().into_builder().child_data(vec![known]).build();
        return (keyed.map_or_else(|_| array.clone(), make_array), 0);
    }
    (array.clone(), items.get_slice_memory_size().unwrap_or(0) as u64)
}

/// A copy. One of a dictionary type keeps `items` if there are any, which are its own already.
fn copied_data(data: &ArrayData, items: Option<&ArrayData>) -> ArrayData {
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
    let values: Vec<ArrayData> = match items {
        Some(items) => vec![items.clone()],
        None => copy.child_data().iter().map(|items| copied_data(items, None)).collect(),
    };
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
