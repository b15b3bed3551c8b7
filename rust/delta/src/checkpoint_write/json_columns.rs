//! Converts JSON values to a column of a type.

use std::fmt;
use std::sync::Arc;

use arrow_array::{new_null_array, Array, ArrayRef, ListArray, MapArray, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Fields};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::action_types::map_values;
use crate::actions::Text;
use crate::scalars::{Bound, ScalarColumn};

/// The deepest nesting: deeper than that of any action.
const DEPTH_LIMIT: usize = 40;

/// The fields of an object, their values as raw JSON.
pub(crate) struct Object<'a>(pub(crate) Vec<(Text<'a>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Object(fields))
            }
        }

        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// How a value that is not of the column's type is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// It becomes null.
    Null,
    /// It is an error.
    Error,
}

/// Converts JSON values to a column. The error says what was found and what was expected.
pub(crate) fn column(values: &[Option<&str>], data_type: &DataType, misfit: Misfit) -> Result<ArrayRef, String> {
    Columns { misfit }.column(values, data_type, 0)
}

struct Columns {
    misfit: Misfit,
}

impl Columns {
    fn column(&self, values: &[Option<&str>], data_type: &DataType, depth: usize) -> Result<ArrayRef, String> {
        if values.iter().all(Option::is_none) {
            return Ok(new_null_array(data_type, values.len()));
        }
        if depth > DEPTH_LIMIT {
            return Err("expected fewer levels of objects within objects".to_owned());
        }
        match data_type {
            DataType::Struct(fields) => self.structs(values, fields, depth),
            DataType::Map(entries, _) => self.maps(values, data_type, map_values(entries), depth),
            DataType::List(item) => {
                let mut ends = Lengths::default();
                let mut items = Vec::new();
                for value in values {
                    let found: Option<Vec<&RawValue>> = self.parsed(*value, data_type)?;
                    ends.push(found.as_ref().map(Vec::len));
                    items.extend(found.into_iter().flatten().map(|item| given(item.get())));
                }
                let (offsets, nulls) = ends.finish();
                let inner = self.column(&items, item.data_type(), depth + 1)?;
                let list = ListArray::try_new(item.clone(), offsets, inner, nulls);
                Ok(Arc::new(list.map_err(|error| error.to_string())?))
            }
            DataType::Utf8 => {
                let texts = values.iter().map(|value| self.text(*value));
                Ok(Arc::new(texts.collect::<StringArray>()))
            }
            _ => self.scalars(values, data_type),
        }
    }

    /// Parses a value; one that is not of the type is null or an error.
    fn parsed<'a, T: Deserialize<'a>>(
        &self,
        value: Option<&'a str>,
        data_type: &DataType,
    ) -> Result<Option<T>, String> {
        let Some(text) = value else { return Ok(None) };
        match serde_json::from_str(text) {
            Ok(found) => Ok(Some(found)),
            Err(_) if self.misfit == Misfit::Null => Ok(None),
            Err(_) => Err(misfit(text, data_type)),
        }
    }

    fn structs(&self, values: &[Option<&str>], fields: &Fields, depth: usize) -> Result<ArrayRef, String> {
        let data_type = DataType::Struct(fields.clone());
        let objects: Vec<Option<Object<'_>>> = values
            .iter()
            .map(|value| self.parsed(*value, &data_type))
            .collect::<Result<_, _>>()?;
        let mut columns = Vec::with_capacity(fields.len());
        for (at, field) in fields.iter().enumerate() {
            let inner: Vec<Option<&str>> = objects
                .iter()
                .map(|object| {
                    let entries = &object.as_ref()?.0;
                    // Writers write fields in the same order in every row: the same index is tried first.
                    let same = entries.get(at).filter(|(name, _)| name.0 == *field.name());
                    let found = same.or_else(|| entries.iter().find(|(name, _)| name.0 == *field.name()));
                    given(found?.1.get())
                })
                .collect();
            columns.push(self.column(&inner, field.data_type(), depth + 1)?);
        }
        let nulls: NullBuffer = objects.iter().map(Option::is_some).collect::<Vec<bool>>().into();
        let array = StructArray::try_new_with_length(fields.clone(), columns, Some(nulls), values.len());
        Ok(Arc::new(array.map_err(|error| error.to_string())?))
    }

    fn maps(
        &self,
        values: &[Option<&str>],
        data_type: &DataType,
        value_type: Option<&DataType>,
        depth: usize,
    ) -> Result<ArrayRef, String> {
        let (DataType::Map(entries, sorted), Some(value_type)) = (data_type, value_type) else {
            return Err(format!("expected a map, found {data_type}"));
        };
        let mut ends = Lengths::default();
        let objects: Vec<Option<Object<'_>>> = values
            .iter()
            .map(|value| self.parsed(*value, data_type))
            .collect::<Result<_, _>>()?;
        let (mut keys, mut inner) = (Vec::new(), Vec::new());
        for object in &objects {
            ends.push(object.as_ref().map(|object| object.0.len()));
            for (key, value) in object.iter().flat_map(|object| &object.0) {
                keys.push(key.0.as_ref());
                inner.push(given(value.get()));
            }
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(keys)),
            self.column(&inner, value_type, depth + 1)?,
        ];
        map_array(entries, *sorted, columns, ends)
    }

    fn text(&self, value: Option<&str>) -> Option<String> {
        let value = value?;
        if value.starts_with('"') {
            return serde_json::from_str(value).ok();
        }
        // Some writers put numbers and booleans where the protocol has texts.
        (self.misfit == Misfit::Error).then(|| value.to_owned())
    }

    fn scalars(&self, values: &[Option<&str>], data_type: &DataType) -> Result<ArrayRef, String> {
        let mut column = ScalarColumn::new(data_type, Bound::Exact, values.len());
        for (row, value) in values.iter().enumerate() {
            match value {
                Some(value) => column.push_json(value),
                None => column.resize(row + 1),
            }
        }
        let array = column.finish();
        if self.misfit == Misfit::Error {
            let lost = values
                .iter()
                .enumerate()
                .find(|(row, value)| value.is_some() && array.is_null(*row));
            if let Some((_, Some(value))) = lost {
                return Err(misfit(value, data_type));
            }
        }
        Ok(array)
    }
}

/// A value, `None` for JSON's null.
pub(crate) fn given(raw: &str) -> Option<&str> {
    (raw != "null").then_some(raw)
}

fn misfit(text: &str, data_type: &DataType) -> String {
    let shown: String = text.chars().take(60).collect();
    format!("expected a value of type {data_type}, found {shown}")
}

/// The builder of offsets and validity of lists and maps.
#[derive(Default, Clone)]
pub(crate) struct Lengths {
    lengths: Vec<usize>,
    valid: Vec<bool>,
}

impl Lengths {
    /// Adds a row with so many entries; `None` is null.
    pub(crate) fn push(&mut self, length: Option<usize>) {
        self.lengths.push(length.unwrap_or_default());
        self.valid.push(length.is_some());
    }

    fn finish(self) -> (OffsetBuffer<i32>, Option<NullBuffer>) {
        let nulls = NullBuffer::from(self.valid);
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        (OffsetBuffer::from_lengths(self.lengths), nulls)
    }
}

/// A map array of keys and values.
pub(crate) fn map_array(
    entries: &arrow_schema::FieldRef,
    sorted: bool,
    columns: Vec<ArrayRef>,
    lengths: Lengths,
) -> Result<ArrayRef, String> {
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(format!("expected entries of a map, found {}", entries.data_type()));
    };
    let (offsets, nulls) = lengths.finish();
    let inner = StructArray::try_new(fields.clone(), columns, None).map_err(|error| error.to_string())?;
    let map = MapArray::try_new(entries.clone(), offsets, inner, nulls, sorted);
    Ok(Arc::new(map.map_err(|error| error.to_string())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::json;
    use crate::checkpoint_write::action_types::{shown_by, ActionTypes};
    use arrow_schema::Field;
    use proptest::prelude::*;
    use serde_json::Value;

    /// JSON values of one type, or null.
    fn typed_json() -> impl Strategy<Value = Vec<Value>> {
        let rows = proptest::option::of((
            any::<i64>(),
            "\\PC{0,8}",
            any::<bool>(),
            proptest::collection::vec(any::<i32>(), 0..3),
        ));
        proptest::collection::vec(rows, 1..8).prop_map(|rows| {
            rows.into_iter()
                .map(|row| match row {
                    None => Value::Null,
                    Some((number, text, flag, list)) => {
                        serde_json::json!({"n": number, "t": text, "in": {"b": flag}, "l": list})
                    }
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn test_what_was_shown_is_kept(values in typed_json()) {
            let texts: Vec<String> = values.iter().map(Value::to_string).collect();
            let none = Fields::from(vec![Field::new("add", DataType::Struct(Fields::empty()), true)]);
            let mut types = ActionTypes::new(&none);
            for text in &texts {
                let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
                types.widen("add", "x", &shown_by(&raw).unwrap()).unwrap();
            }
            let types = types.settled();
            let Some(field) = types.of("add").and_then(|fields| fields.iter().next()) else {
                return Ok(());
            };
            let given: Vec<Option<&str>> = texts.iter().map(|text| given(text)).collect();
            let array = column(&given, field.data_type(), Misfit::Error).unwrap();
            for (row, value) in values.iter().enumerate() {
                prop_assert_eq!(&json(&array, row).unwrap(), value);
            }
        }

        #[test]
        fn test_any_text_is_a_value_or_an_error(text in "\\PC{0,30}") {
            for data_type in [DataType::Int32, DataType::Utf8, DataType::Date32, DataType::Boolean] {
                let _ = column(&[Some(&text)], &data_type, Misfit::Error);
                prop_assert_eq!(column(&[Some(&text)], &data_type, Misfit::Null).unwrap().len(), 1);
            }
        }
    }

    #[test]
    fn test_a_misfit_is_an_error_or_null() {
        let error = column(&[Some("\"x\"")], &DataType::Int64, Misfit::Error).unwrap_err();
        assert!(error.contains("Int64") && error.contains("\"x\""), "{error}");
        assert_eq!(
            column(&[Some("\"x\"")], &DataType::Int64, Misfit::Null)
                .unwrap()
                .null_count(),
            1
        );
        assert_eq!(
            column(&[Some("7")], &DataType::Utf8, Misfit::Null)
                .unwrap()
                .null_count(),
            1
        );
    }
}
