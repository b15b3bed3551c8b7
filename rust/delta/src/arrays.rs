//! Reads the columns of a checkpoint, whose Arrow types vary with its writer, as texts, integers, maps or JSON.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array, MapArray, RecordBatch, StringArray, StructArray};
use arrow_cast::cast;
use arrow_schema::DataType;
use serde_json::{Map, Number, Value};

/// The deepest nesting: deeper than that of any action.
const DEPTH_LIMIT: usize = 64;

/// The struct column of an action, if the batch has it.
pub(crate) fn action<'a>(batch: &'a RecordBatch, name: &str) -> Option<&'a StructArray> {
    batch.column_by_name(name)?.as_struct_opt()
}

/// A field as texts.
pub(crate) fn texts(action: &StructArray, name: &str) -> Option<StringArray> {
    as_texts(action.column_by_name(name)?)
}

pub(crate) fn as_texts(array: &ArrayRef) -> Option<StringArray> {
    if let Some(texts) = array.as_string_opt::<i32>() {
        return Some(texts.clone());
    }
    cast(array, &DataType::Utf8).ok()?.as_string_opt::<i32>().cloned()
}

/// A field as 64-bit integers.
pub(crate) fn integers(action: &StructArray, name: &str) -> Option<Int64Array> {
    let array = action.column_by_name(name)?;
    cast(array, &DataType::Int64).ok()?.as_primitive_opt().cloned()
}

/// A field as a map of texts: the range of entries for each row, and the columns of keys and values.
pub(crate) struct TextMap {
    map: MapArray,
    keys: StringArray,
    values: StringArray,
}

impl TextMap {
    pub(crate) fn of(action: &StructArray, name: &str) -> Option<Self> {
        let map = action.column_by_name(name)?.as_map_opt()?.clone();
        Some(Self {
            keys: as_texts(map.keys())?,
            values: as_texts(map.values())?,
            map,
        })
    }

    pub(crate) fn entries(&self, row: usize) -> impl Iterator<Item = (&str, Option<&str>)> {
        let offsets = self.map.value_offsets();
        let bounds = (offsets.get(row), offsets.get(row + 1));
        let range = match bounds {
            (Some(start), Some(end)) if self.map.is_valid(row) => {
                usize::try_from(*start).unwrap_or(0)..usize::try_from(*end).unwrap_or(0)
            }
            _ => 0..0,
        };
        range
            .filter(|entry| *entry < self.keys.len() && *entry < self.values.len())
            .map(|entry| {
                let value = self.values.is_valid(entry).then(|| self.values.value(entry));
                (self.keys.value(entry), value)
            })
    }
}

/// A value as JSON; nulls inside structs are left out. `None` for a type that no action has.
pub(crate) fn json(array: &dyn Array, row: usize) -> Option<Value> {
    to_json(array, row, 0)
}

fn to_json(array: &dyn Array, row: usize, depth: usize) -> Option<Value> {
    if row >= array.len() || depth > DEPTH_LIMIT {
        return None;
    }
    if array.is_null(row) {
        return Some(Value::Null);
    }
    let value = match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Bool(array.as_boolean_opt()?.value(row)),
        DataType::Struct(fields) => {
            let array = array.as_struct_opt()?;
            let mut object = Map::new();
            for (field, column) in fields.iter().zip(array.columns()) {
                match to_json(column, row, depth + 1) {
                    None | Some(Value::Null) => {}
                    Some(value) => {
                        object.insert(field.name().clone(), value);
                    }
                }
            }
            Value::Object(object)
        }
        DataType::List(_) => {
            let items = array.as_list_opt::<i32>()?.value(row);
            Value::Array(
                (0..items.len())
                    .map(|item| to_json(&items, item, depth + 1))
                    .collect::<Option<_>>()?,
            )
        }
        DataType::Map(_, _) => {
            let entries = array.as_map_opt()?.value(row);
            let keys = as_texts(entries.column_by_name(entries.column_names().first()?)?)?;
            let values = entries.columns().get(1)?;
            let mut object = Map::new();
            for entry in 0..entries.len() {
                if keys.is_valid(entry) {
                    object.insert(keys.value(entry).to_owned(), to_json(values, entry, depth + 1)?);
                }
            }
            Value::Object(object)
        }
        data_type if data_type.is_integer() => {
            let one = cast(&array.slice(row, 1), &DataType::Int64).ok()?;
            let one: &Int64Array = one.as_primitive_opt()?;
            Value::Number(Number::from(one.is_valid(0).then(|| one.value(0))?))
        }
        _ => Value::String(as_texts(&array.slice(row, 1))?.value(0).to_owned()),
    };
    Some(value)
}
