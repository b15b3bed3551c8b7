use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{DictionaryArray, FixedSizeListArray, Int32Array, ListArray, NullArray, StringArray};
use arrow_schema::Fields;

use super::*;

/// How many nulls the check finds, and where.
fn found(field: Field, array: ArrayRef) -> Option<(String, usize)> {
    let schema = Arc::new(Schema::new(vec![field]));
    // Arrow makes no such arrays of types that say it; those from elsewhere come unchecked.
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(array.len()));
    let loose = Schema::new(vec![Field::new("c", array.data_type().clone(), true)]);
    let batch = RecordBatch::try_new_with_options(Arc::new(loose), vec![array], &options).unwrap();
    match RequiredFields::of(&schema).settle(&batch) {
        Ok(settled) => {
            // None are left, and nothing else changed.
            assert_eq!(settled.num_rows(), batch.num_rows());
            assert!(!RequiredFields::of(&schema)
                .0
                .iter()
                .flatten()
                .any(|node| node.may_lack(settled.column(0))));
            assert_eq!(settled.column(0).nulls(), batch.column(0).nulls());
            None
        }
        Err(FileError::UnexpectedNulls { column, count }) => Some((column, count)),
        Err(other) => panic!("{other}"),
    }
}

fn numbers(values: &[Option<i32>]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

fn required(data_type: DataType) -> Field {
    Field::new("c", data_type, false)
}

/// A struct whose child must have values and may lack them, `nulls` of it being null.
fn parent(values: &[Option<i32>], nulls: Option<Vec<bool>>) -> (Field, ArrayRef) {
    let field = Field::new("a", DataType::Int32, false);
    let loose = Fields::from(vec![field.clone().with_nullable(true)]);
    let array = StructArray::new(loose, vec![numbers(values)], nulls.map(NullBuffer::from));
    let fields = Fields::from(vec![field]);
    (Field::new("c", DataType::Struct(fields), true), Arc::new(array))
}

#[test]
fn test_a_null_in_a_required_column_is_found() {
    assert_eq!(
        found(required(DataType::Int32), numbers(&[Some(1), None, None])),
        Some(("c".into(), 2))
    );
    assert_eq!(found(required(DataType::Int32), numbers(&[Some(1)])), None);
    assert_eq!(found(Field::new("c", DataType::Int32, true), numbers(&[None])), None);
    assert_eq!(
        found(required(DataType::Null), Arc::new(NullArray::new(3))),
        Some(("c".into(), 3))
    );
    assert_eq!(found(required(DataType::Null), Arc::new(NullArray::new(0))), None);
}

#[test]
fn test_a_null_below_a_struct_counts_unless_the_struct_is_null() {
    let (field, array) = parent(&[Some(1), None, None], None);
    assert_eq!(found(field, array), Some(("c.a".into(), 2)));
    let (field, array) = parent(&[Some(1), None, None], Some(vec![true, false, true]));
    assert_eq!(found(field, array), Some(("c.a".into(), 1)));
    let (field, array) = parent(&[Some(1), None, None], Some(vec![true, false, false]));
    assert_eq!(found(field.clone(), array.clone()), None);
    assert_eq!(found(field, array.slice(1, 1)), None);
}

#[test]
fn test_items_count_within_the_lists_that_are_there() {
    let item = Arc::new(Field::new("item", DataType::Int32, false));
    let field = Field::new("c", DataType::List(item.clone()), true);
    let mut lists = ListBuilder::new(Int32Builder::new());
    lists.append_value([Some(1), None]);
    lists.append_value([Some(2), Some(3)]);
    lists.append_value([None]);
    let lists = lists.finish();
    assert_eq!(
        found(field.clone(), Arc::new(lists.clone())),
        Some(("c.item".into(), 2))
    );
    assert_eq!(found(field.clone(), Arc::new(lists.slice(1, 1))), None);
    // The last list is null, its range is not empty.
    let nulls = NullBuffer::from(vec![false, true, false]);
    let loose = Arc::new(Field::new("item", DataType::Int32, true));
    let masked = ListArray::new(loose, lists.offsets().clone(), lists.values().clone(), Some(nulls));
    assert_eq!(found(field, Arc::new(masked)), None);
}

#[test]
fn test_items_of_fixed_size_lists_and_maps_count() {
    let item = Field::new("item", DataType::Int32, false);
    let field = Field::new("c", DataType::FixedSizeList(Arc::new(item.clone()), 2), true);
    let loose = Arc::new(item.with_nullable(true));
    let values = numbers(&[Some(1), None, Some(2), Some(3)]);
    let lists = FixedSizeListArray::new(loose.clone(), 2, values.clone(), None);
    assert_eq!(
        found(field.clone(), Arc::new(lists.clone())),
        Some(("c.item".into(), 1))
    );
    assert_eq!(found(field.clone(), Arc::new(lists.slice(1, 1))), None);
    let masked = FixedSizeListArray::new(loose, 2, values, Some(NullBuffer::from(vec![false, true])));
    assert_eq!(found(field, Arc::new(masked)), None);

    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    maps.keys().append_value("k");
    maps.values().append_null();
    maps.append(true).unwrap();
    let maps = maps.finish();
    let DataType::Map(entries, sorted) = maps.data_type().clone() else {
        panic!("not a map")
    };
    let DataType::Struct(fields) = entries.data_type().clone() else {
        panic!("no entries")
    };
    let strict = [
        fields[0].clone(),
        Arc::new(fields[1].as_ref().clone().with_nullable(false)),
    ];
    let entries = Arc::new(
        entries
            .as_ref()
            .clone()
            .with_data_type(DataType::Struct(strict.into_iter().collect())),
    );
    let field = Field::new("c", DataType::Map(entries, sorted), true);
    assert_eq!(found(field, Arc::new(maps)), Some(("c.entries.values".into(), 1)));
}

#[test]
fn test_a_word_of_a_dictionary_that_is_null_counts() {
    let data_type = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let words: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    let of = |keys: Vec<i32>| -> ArrayRef {
        Arc::new(DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), words.clone()).unwrap())
    };
    assert_eq!(
        found(required(data_type.clone()), of(vec![0, 1, 1])),
        Some(("c".into(), 2))
    );
    let used = of(vec![0, 0]);
    let schema = Schema::new(vec![required(data_type)]);
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![used]).unwrap();
    assert_eq!(RequiredFields::of(&schema).settle(&batch).unwrap(), batch);
}

#[test]
fn test_words_below_a_null_struct_are_replaced_with_the_structs_around_them() {
    let data_type = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let inner = Fields::from(vec![required(data_type.clone())]);
    let strict = Field::new("s", DataType::Struct(inner.clone()), false);
    let outer = Fields::from(vec![strict.clone()]);
    let column = Field::new("o", DataType::Struct(outer.clone()), true);
    for words in [vec![Some("a"), None], vec![Some("a")], vec![]] {
        for key in [None, Some(1)] {
            let first = if words.is_empty() { None } else { Some(0) };
            if key.is_some() && words.len() < 2 {
                continue;
            }
            let words: ArrayRef = Arc::new(StringArray::from(words.clone()));
            let keys = Int32Array::from(vec![first, key]);
            let loose = Fields::from(vec![Field::new("c", data_type.clone(), true)]);
            let below: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::try_new(keys, words).unwrap());
            let valid = NullBuffer::from(vec![first.is_some(), false]);
            let inner = StructArray::new(loose.clone(), vec![below], Some(valid.clone()));
            let outer = Fields::from(vec![Field::new("s", DataType::Struct(loose), true)]);
            let array = StructArray::new(outer, vec![Arc::new(inner)], Some(valid.clone()));
            let loose = Schema::new(vec![Field::new("o", array.data_type().clone(), true)]);
            let batch = RecordBatch::try_new(Arc::new(loose), vec![Arc::new(array)]).unwrap();
            let nodes = RequiredFields::of(&Schema::new(vec![column.clone()]));
            let node = nodes.0[0].as_ref().unwrap();
            node.check(batch.column(0), None, "o").unwrap();
            let settled = node.children[0].as_ref().unwrap();
            let inner = settled.without_nulls(batch.column(0).as_struct().column(0)).unwrap();
            assert_eq!(inner.logical_null_count(), 0);
            assert_eq!(inner.as_struct().column(0).logical_null_count(), 0);
        }
    }
}
