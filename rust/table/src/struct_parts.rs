//! Joins structs from parts that hold some fields each: from several files of a fragment, or from a table's row and a source's.
//!
//! A joined struct is null where all its parts are: a null in one part concerns only the fields of that part.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{new_null_array, Array, ArrayRef, BooleanArray, GenericListArray, OffsetSizeTrait, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, FieldRef};
use arrow_select::nullif::nullif;

/// Null where both are.
pub(crate) fn null_in_both(left: Option<&NullBuffer>, right: Option<&NullBuffer>) -> Option<NullBuffer> {
    let (left, right) = (left?, right?);
    Some(NullBuffer::new(left.inner() | right.inner()))
}

/// A field of a struct, null where the struct is.
pub(crate) fn child_of(parent: &StructArray, name: &str) -> Option<Result<ArrayRef, ArrowError>> {
    let child = parent.column_by_name(name)?;
    Some(match parent.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => Ok(child.clone()),
        Some(nulls) => nullif(child, &BooleanArray::new(!nulls.inner(), None)),
    })
}

/// The same values, with the children masked below null structs: an evaluator must not see the values that writers left there.
pub(crate) fn without_hidden(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let Some(parent) = array.as_struct_opt().filter(|parent| parent.num_columns() > 0) else {
        return Ok(array.clone());
    };
    let hidden = parent.nulls().filter(|nulls| nulls.null_count() > 0);
    let hidden = hidden.map(|nulls| BooleanArray::new(!nulls.inner(), None));
    let columns = parent.columns().iter().map(|child| match &hidden {
        Some(hidden) => without_hidden(&nullif(child, hidden)?),
        None => without_hidden(child),
    });
    let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
    let shown = StructArray::try_new(parent.fields().clone(), columns, parent.nulls().cloned())?;
    Ok(Arc::new(shown))
}

/// Joins parts to one array of a type; fields that no part holds are null.
pub(crate) fn joined(parts: &[ArrayRef], wanted: &DataType) -> Result<ArrayRef, ArrowError> {
    let Some(first) = parts.first() else {
        return Err(ArrowError::InvalidArgumentError(
            "expected parts of a column, found none".into(),
        ));
    };
    if parts.len() == 1 && first.data_type() == wanted {
        return Ok(first.clone());
    }
    match wanted {
        DataType::Struct(fields) => {
            let structs: Vec<&StructArray> = parts.iter().filter_map(|part| part.as_struct_opt()).collect();
            let nulls = structs.iter().map(|part| part.nulls().cloned());
            let nulls = nulls
                .reduce(|left, right| null_in_both(left.as_ref(), right.as_ref()))
                .flatten();
            let columns = fields.iter().map(|field| {
                let own = structs.iter().filter_map(|part| child_of(part, field.name()));
                let own = own.collect::<Result<Vec<_>, _>>()?;
                match own.is_empty() {
                    true => Ok(new_null_array(field.data_type(), first.len())),
                    false => joined(&own, field.data_type()),
                }
            });
            let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
            Ok(Arc::new(StructArray::try_new(fields.clone(), columns, nulls)?))
        }
        DataType::List(item) => joined_lists::<i32>(parts, item),
        DataType::LargeList(item) => joined_lists::<i64>(parts, item),
        _ => Ok(first.clone()),
    }
}

fn joined_lists<O: OffsetSizeTrait>(parts: &[ArrayRef], item: &FieldRef) -> Result<ArrayRef, ArrowError> {
    let lists: Vec<&GenericListArray<O>> = parts.iter().filter_map(|part| part.as_list_opt::<O>()).collect();
    let mut lengths = lists.iter().map(|list| list.offsets().lengths());
    let first = lists.first().zip(lengths.next());
    let Some((first, lengths_of_first)) = first else {
        return Err(ArrowError::InvalidArgumentError("expected lists, found none".into()));
    };
    let wanted: Vec<usize> = lengths_of_first.collect();
    if lengths.any(|found| !found.eq(wanted.iter().copied())) {
        return Err(ArrowError::InvalidArgumentError(
            "expected lists of one length in all files that hold fields of their items, found others".into(),
        ));
    }
    let items: Vec<ArrayRef> = lists
        .iter()
        .map(|list| {
            let bounds = list.offsets().first().zip(list.offsets().last());
            let (start, end) = bounds.map_or((0, 0), |(start, end)| (start.as_usize(), end.as_usize()));
            list.values().slice(start, end - start)
        })
        .collect();
    let offsets = arrow_buffer::OffsetBuffer::<O>::from_lengths(wanted);
    let items = joined(&items, item.data_type())?;
    let lists = GenericListArray::<O>::try_new(item.clone(), offsets, items, first.nulls().cloned())?;
    Ok(Arc::new(lists))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Int32Array;
    use arrow_schema::{Field, Fields};

    fn part(name: &str, values: Vec<Option<i32>>, valid: Vec<bool>) -> ArrayRef {
        let fields: Fields = vec![Field::new(name, DataType::Int32, true)].into();
        let column: ArrayRef = Arc::new(Int32Array::from(values));
        Arc::new(StructArray::new(fields, vec![column], Some(NullBuffer::from(valid))))
    }

    fn wanted() -> DataType {
        let field = |name| Field::new(name, DataType::Int32, true);
        DataType::Struct(vec![field("a"), field("b"), field("c")].into())
    }

    #[test]
    fn test_a_struct_of_parts_is_null_where_all_are_and_hides_nothing_below_a_null() {
        let left = part("a", vec![Some(1), Some(2), Some(3)], vec![true, false, false]);
        let right = part("b", vec![Some(4), Some(5), Some(6)], vec![false, true, false]);
        let whole = joined(&[left, right], &wanted()).unwrap();
        let whole = whole.as_struct();
        let nulls: Vec<bool> = (0..3).map(|row| whole.is_null(row)).collect();
        assert_eq!(nulls, [false, false, true]);
        let column = |index: usize| -> Vec<Option<i32>> {
            let values = whole.column(index);
            values.as_primitive::<arrow_array::types::Int32Type>().iter().collect()
        };
        assert_eq!(column(0), [Some(1), None, None]);
        assert_eq!(column(1), [None, Some(5), None]);
        assert_eq!(column(2), [None, None, None]);
    }

    #[test]
    fn test_nothing_is_left_below_null_structs() {
        let inner = part("a", vec![Some(1), Some(2), Some(3)], vec![true, true, false]);
        let fields: Fields = vec![Field::new("s", inner.data_type().clone(), true)].into();
        let nulls = Some(NullBuffer::from(vec![true, false, true]));
        let outer: ArrayRef = Arc::new(StructArray::new(fields, vec![inner], nulls));
        let shown = without_hidden(&outer).unwrap();
        let values = shown.as_struct().column(0).as_struct().column(0).clone();
        let values = values.as_primitive::<arrow_array::types::Int32Type>();
        assert_eq!(values.iter().collect::<Vec<_>>(), [Some(1), None, None]);
        assert_eq!(shown.data_type(), outer.data_type());
    }

    #[test]
    fn test_items_of_lists_get_the_fields_that_no_part_holds_as_nulls() {
        let items = part("a", vec![Some(1), Some(2), Some(3)], vec![true, true, true]);
        let item: FieldRef = Arc::new(Field::new("item", items.data_type().clone(), true));
        let offsets = arrow_buffer::OffsetBuffer::<i32>::from_lengths([2, 0, 1]);
        let list: ArrayRef = Arc::new(GenericListArray::new(item, offsets, items, None));
        let whole: FieldRef = Arc::new(Field::new("item", wanted(), true));
        let found = joined(&[list.slice(1, 2)], &DataType::List(whole)).unwrap();
        let found = found.as_list::<i32>();
        assert_eq!((found.value_length(0), found.value_length(1)), (0, 1));
        assert_eq!(found.values().as_struct().column(2).null_count(), 1);
    }
}
