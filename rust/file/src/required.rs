//! Checks required (non-nullable) fields for nulls, which no reader could return, so that no file may hold them.
//!
//! A value is visible if all its parents are valid: values below a null struct, in a null list's range or outside of all lists are not.
//! Invisible nulls are replaced, since some readers read a column without its parents. Null counts alone clear nearly all batches; rows are
//! checked only where they do not.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::{
    downcast_dictionary_array, new_null_array, Array, ArrayRef, DictionaryArray, FixedSizeListArray, GenericListArray,
    MapArray, OffsetSizeTrait, PrimitiveArray, RecordBatch, RecordBatchOptions, StructArray,
};
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use crate::error::{FileError, Result};
use crate::nulls::replaced;

type ArrowResult<T> = std::result::Result<T, ArrowError>;

/// The required fields of a schema, and their parents.
#[derive(Debug, Clone)]
pub struct RequiredFields(Vec<Option<Node>>);

/// A field that is required, or has such fields below it.
#[derive(Debug, Clone)]
struct Node {
    name: String,
    required: bool,
    children: Vec<Option<Node>>,
}

impl RequiredFields {
    /// The required fields of a schema.
    pub fn of(schema: &Schema) -> Self {
        RequiredFields(schema.fields().iter().map(|field| Node::of(field)).collect())
    }

    /// The batch without nulls in required fields: a visible one is an error, others are replaced. The columns are the schema's, in order.
    pub fn settle(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut settled: Option<Vec<ArrayRef>> = None;
        for (index, (column, node)) in batch.columns().iter().zip(&self.0).enumerate() {
            let Some(node) = node.as_ref().filter(|node| node.may_lack(column)) else {
                continue;
            };
            node.check(column, None, &node.name)?;
            let columns = settled.get_or_insert_with(|| batch.columns().to_vec());
            if let Some(place) = columns.get_mut(index) {
                *place = node.without_nulls(column).map_err(invalid)?;
            }
        }
        let Some(columns) = settled else {
            return Ok(batch.clone());
        };
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(batch.schema(), columns, &options).map_err(invalid)
    }
}

impl Node {
    fn of(field: &Field) -> Option<Node> {
        let below: Vec<&Field> = match field.data_type() {
            DataType::Struct(fields) => fields.iter().map(AsRef::as_ref).collect(),
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::FixedSizeList(item, _)
            | DataType::Map(item, _) => vec![item.as_ref()],
            _ => vec![],
        };
        let children: Vec<Option<Node>> = below.into_iter().map(Node::of).collect();
        let required = !field.is_nullable();
        (required || children.iter().any(Option::is_some)).then(|| Node {
            name: field.name().clone(),
            required,
            children,
        })
    }

    /// Whether there is a null, visible or not, at or below a required field.
    fn may_lack(&self, array: &ArrayRef) -> bool {
        if self.required && has_nulls(array) {
            return true;
        }
        let below = |index: usize, child: &ArrayRef| {
            let node = self.children.get(index).and_then(Option::as_ref);
            node.is_some_and(|node| node.may_lack(child))
        };
        match array.data_type() {
            DataType::Struct(_) => array.as_struct().columns().iter().enumerate().any(|(i, c)| below(i, c)),
            DataType::List(_) => below(0, array.as_list::<i32>().values()),
            DataType::LargeList(_) => below(0, array.as_list::<i64>().values()),
            DataType::FixedSizeList(_, _) => below(0, array.as_fixed_size_list().values()),
            DataType::Map(_, _) => below(0, &entries(array.as_map())),
            _ => false,
        }
    }

    fn child(&self) -> Option<&Node> {
        self.children.first().and_then(Option::as_ref)
    }

    /// Checks the rows. `above` says which of them are visible; `None` for all.
    fn check(&self, array: &ArrayRef, above: Option<&NullBuffer>, path: &str) -> Result<()> {
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        if let Some(nulls) = nulls.as_ref().filter(|_| self.required) {
            let seen = above.map_or(nulls.null_count(), |above| seen_nulls(nulls, above));
            if seen > 0 {
                return Err(FileError::UnexpectedNulls {
                    column: path.to_owned(),
                    count: seen,
                });
            }
        }
        if self.children.iter().all(Option::is_none) {
            return Ok(());
        }
        let present = NullBuffer::union(nulls.as_ref(), above);
        match array.data_type() {
            DataType::Struct(_) => {
                for (child, node) in array.as_struct().columns().iter().zip(&self.children) {
                    if let Some(node) = node {
                        node.check(child, present.as_ref(), &format!("{path}.{}", node.name))?;
                    }
                }
                Ok(())
            }
            DataType::List(_) => self.check_list(array.as_list::<i32>(), present.as_ref(), path),
            DataType::LargeList(_) => self.check_list(array.as_list::<i64>(), present.as_ref(), path),
            DataType::Map(_, _) => {
                let map = array.as_map();
                self.check_ranges(&entries(map), map.offsets(), present.as_ref(), path)
            }
            DataType::FixedSizeList(_, size) => {
                let size = usize::try_from(*size).unwrap_or(0);
                let items = present.map(|present| present.expand(size));
                self.check_items(array.as_fixed_size_list().values(), items.as_ref(), path)
            }
            _ => Ok(()),
        }
    }

    fn check_list<O: OffsetSizeTrait>(
        &self,
        list: &GenericListArray<O>,
        present: Option<&NullBuffer>,
        path: &str,
    ) -> Result<()> {
        self.check_ranges(list.values(), list.offsets(), present, path)
    }

    /// Checks the items: those in the range of a valid list are visible.
    fn check_ranges<O: ArrowNativeType>(
        &self,
        items: &ArrayRef,
        offsets: &OffsetBuffer<O>,
        present: Option<&NullBuffer>,
        path: &str,
    ) -> Result<()> {
        let first = offsets.first().map_or(0, |offset| offset.as_usize());
        let last = offsets.last().map_or(0, |offset| offset.as_usize());
        let items = items.slice(first, last.saturating_sub(first));
        let seen = present.map(|present| {
            let mut seen = BooleanBufferBuilder::new(items.len());
            for (list, is_there) in offsets.lengths().zip(present.iter()) {
                seen.append_n(list, is_there);
            }
            NullBuffer::new(seen.finish())
        });
        self.check_items(&items, seen.as_ref(), path)
    }

    fn check_items(&self, items: &ArrayRef, seen: Option<&NullBuffer>, path: &str) -> Result<()> {
        match self.child() {
            Some(node) => node.check(items, seen, &format!("{path}.{}", node.name)),
            None => Ok(()),
        }
    }

    /// The array without the nulls of required fields, all of which are invisible.
    fn without_nulls(&self, array: &ArrayRef) -> ArrowResult<ArrayRef> {
        if !self.may_lack(array) {
            return Ok(array.clone());
        }
        let nulls = array.nulls().filter(|_| !self.required).cloned();
        let child = |index: usize, child: &ArrayRef| match self.children.get(index).and_then(Option::as_ref) {
            Some(node) => node.without_nulls(child),
            None => Ok(child.clone()),
        };
        Ok(match array.data_type() {
            DataType::Struct(fields) => {
                let columns = array.as_struct().columns().iter().enumerate();
                let columns = columns
                    .map(|(i, c)| child(i, c))
                    .collect::<ArrowResult<Vec<ArrayRef>>>()?;
                Arc::new(StructArray::try_new_with_length(
                    fields.clone(),
                    columns,
                    nulls,
                    array.len(),
                )?)
            }
            DataType::List(item) => {
                let list = array.as_list::<i32>();
                let items = child(0, list.values())?;
                Arc::new(GenericListArray::try_new(
                    item.clone(),
                    list.offsets().clone(),
                    items,
                    nulls,
                )?)
            }
            DataType::LargeList(item) => {
                let list = array.as_list::<i64>();
                let items = child(0, list.values())?;
                Arc::new(GenericListArray::try_new(
                    item.clone(),
                    list.offsets().clone(),
                    items,
                    nulls,
                )?)
            }
            DataType::FixedSizeList(item, size) => {
                let items = child(0, array.as_fixed_size_list().values())?;
                Arc::new(FixedSizeListArray::try_new(item.clone(), *size, items, nulls)?)
            }
            DataType::Map(field, is_sorted) => {
                let map = array.as_map();
                let pairs = child(0, &entries(map))?.as_struct().clone();
                Arc::new(MapArray::try_new(
                    field.clone(),
                    map.offsets().clone(),
                    pairs,
                    nulls,
                    *is_sorted,
                )?)
            }
            DataType::Dictionary(_, _) => with_keys(array)?,
            // The null type has nothing but nulls.
            DataType::Null => array.clone(),
            _ => replaced(array, None)?,
        })
    }
}

fn invalid(error: ArrowError) -> FileError {
    FileError::invalid(format!("the data are no valid Arrow arrays: {error}"))
}

fn entries(map: &MapArray) -> ArrayRef {
    Arc::new(map.entries().clone())
}

/// The dictionary array with a valid key in place of each null, and with items that are not null.
fn with_keys(array: &ArrayRef) -> ArrowResult<ArrayRef> {
    fn of_words<K: ArrowDictionaryKeyType>(array: &DictionaryArray<K>) -> ArrowResult<ArrayRef> {
        let values = match array.values() {
            none if none.is_empty() => replaced(&new_null_array(none.data_type(), 1), None)?,
            items if items.logical_null_count() > 0 => replaced(items, None)?,
            items => items.clone(),
        };
        // The key below a null may be out of range.
        let keys = array.keys().iter().map(|key| key.unwrap_or_default());
        let keys = PrimitiveArray::<K>::from_iter_values(keys);
        Ok(Arc::new(DictionaryArray::try_new(keys, values)?))
    }
    downcast_dictionary_array!(
        array => of_words(array),
        _ => Ok(array.clone()),
    )
}

/// The number of visible nulls.
fn seen_nulls(nulls: &NullBuffer, above: &NullBuffer) -> usize {
    let missing = !nulls.inner();
    (&missing & above.inner()).count_set_bits()
}

/// Whether a value may be null: by its validity, or by a dictionary item that is null.
fn has_nulls(array: &ArrayRef) -> bool {
    fn of_words<K: ArrowDictionaryKeyType>(array: &DictionaryArray<K>) -> bool {
        array.keys().null_count() > 0 || array.values().logical_null_count() > 0
    }
    downcast_dictionary_array!(
        array => of_words(array),
        DataType::Null => !array.is_empty(),
        _ => array.null_count() > 0,
    )
}

#[cfg(test)]
mod tests;
