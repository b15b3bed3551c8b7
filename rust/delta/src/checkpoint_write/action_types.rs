//! The types of the actions' columns: those of the protocol, and the unknown fields of the base checkpoint and of newer commits.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};
use serde_json::value::RawValue;

use super::json_columns::Object;
use crate::error::{DeltaError, Result};

/// The deepest nesting: deeper than that of any action.
const DEPTH_LIMIT: usize = 32;
/// Derived fields: never carried along, but computed where they are wanted.
const DERIVED: [&str; 3] = ["stats", "stats_parsed", "partitionValues_parsed"];

/// The columns of a checkpoint: a struct for each kind of action.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ActionTypes(pub(crate) Fields);

impl ActionTypes {
    /// The columns of the protocol, with maps, lists and nullability as checkpoints have them.
    pub(crate) fn new(fields: &Fields) -> Self {
        let fields = fields
            .iter()
            .map(|field| Field::new(field.name(), normal(field.data_type()), true));
        Self(fields.collect())
    }

    /// The fields of an action; none if it has no column.
    pub(crate) fn of(&self, action: &str) -> Option<&Fields> {
        match self.0.iter().find(|field| field.name() == action)?.data_type() {
            DataType::Struct(fields) => Some(fields),
            _ => None,
        }
    }

    /// The same with types that Parquet supports in place of nulls and empty objects.
    pub(crate) fn settled(&self) -> Self {
        let fields = self.0.iter();
        Self(
            fields
                .map(|field| match field.data_type() {
                    // An action without fields keeps its empty struct.
                    DataType::Struct(fields) if fields.is_empty() => field.clone(),
                    other => Arc::new(Field::new(field.name(), settled(other), true)),
                })
                .collect(),
        )
    }

    /// Adds a field of an action or widens its type; returns whether anything changed.
    pub(crate) fn widen(&mut self, action: &str, name: &str, found: &DataType) -> Result<bool> {
        if DERIVED.contains(&name) || matches!(found, DataType::Null) {
            return Ok(false);
        }
        let Some(fields) = self.of(action) else {
            return Ok(false);
        };
        let found = normal(found);
        let known = fields.iter().find(|field| field.name() == name);
        let wider = match known.map(|field| field.data_type()) {
            None => found,
            Some(known) => merged(known, &found, 0).ok_or_else(|| {
                DeltaError::unsupported(format!(
                    "no checkpoint was written: field '{name}' of {action} has values of different types ({known} and {found}), and a \
                     checkpoint must not drop it"
                ))
            })?,
        };
        if known.is_some_and(|known| *known.data_type() == wider) {
            return Ok(false);
        }
        let mut fields: Vec<Arc<Field>> = fields.iter().cloned().collect();
        let field = Arc::new(Field::new(name, wider, true));
        match fields.iter_mut().find(|field| field.name() == name) {
            Some(known) => *known = field,
            None => fields.push(field),
        }
        let action = action.to_owned();
        let columns = self.0.iter().map(|column| {
            if *column.name() == action {
                Arc::new(Field::new(&action, DataType::Struct(fields.clone().into()), true))
            } else {
                column.clone()
            }
        });
        self.0 = columns.collect();
        Ok(true)
    }
}

/// A map with text keys, in the form of checkpoints.
fn text_map(values: DataType) -> DataType {
    let fields = vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", values, true),
    ];
    DataType::Map(
        Arc::new(Field::new("key_value", DataType::Struct(fields.into()), false)),
        false,
    )
}

/// The type of a map's values.
pub(crate) fn map_values(entries: &Field) -> Option<&DataType> {
    match entries.data_type() {
        DataType::Struct(fields) => fields.get(1).map(|field| field.data_type()),
        _ => None,
    }
}

/// A type with the field names and the nullability of checkpoints.
fn normal(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Struct(fields) => DataType::Struct(
            fields
                .iter()
                .map(|field| Field::new(field.name(), normal(field.data_type()), true))
                .collect(),
        ),
        DataType::Map(entries, _) => text_map(map_values(entries).map_or(DataType::Utf8, normal)),
        DataType::List(item) => list_of(normal(item.data_type())),
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        other => other.clone(),
    }
}

fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("element", item, true)))
}

/// A type that Parquet supports: always null becomes text, an always empty object becomes a map.
fn settled(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Null => DataType::Utf8,
        DataType::Struct(fields) if fields.is_empty() => text_map(DataType::Utf8),
        DataType::Struct(fields) => DataType::Struct(
            fields
                .iter()
                .map(|field| Field::new(field.name(), settled(field.data_type()), true))
                .collect(),
        ),
        DataType::List(item) => list_of(settled(item.data_type())),
        other => other.clone(),
    }
}

/// A common type for the values of both; the first one if possible.
fn merged(one: &DataType, other: &DataType, depth: usize) -> Option<DataType> {
    if one == other {
        return Some(one.clone());
    }
    if depth > DEPTH_LIMIT {
        return None;
    }
    Some(match (one, other) {
        (DataType::Null, known) | (known, DataType::Null) => known.clone(),
        (DataType::Struct(ones), DataType::Struct(others)) => {
            let mut fields: Vec<Arc<Field>> = Vec::with_capacity(ones.len());
            for field in ones {
                let same = others.iter().find(|other| other.name() == field.name());
                let data_type = match same {
                    Some(same) => merged(field.data_type(), same.data_type(), depth + 1)?,
                    None => field.data_type().clone(),
                };
                fields.push(Arc::new(Field::new(field.name(), data_type, true)));
            }
            let new = others
                .iter()
                .filter(|other| !ones.iter().any(|field| field.name() == other.name()));
            fields.extend(new.cloned());
            DataType::Struct(fields.into())
        }
        // A JSON object may be a map.
        (DataType::Map(entries, _), DataType::Struct(fields)) => {
            let mut values = map_values(entries)?.clone();
            for field in fields {
                values = if matches!(values, DataType::Utf8) && !field.data_type().is_nested() {
                    values
                } else {
                    merged(&values, field.data_type(), depth + 1)?
                };
            }
            text_map(values)
        }
        (DataType::Map(ones, _), DataType::Map(others, _)) => {
            text_map(merged(map_values(ones)?, map_values(others)?, depth + 1)?)
        }
        (DataType::List(one), DataType::List(other)) => list_of(merged(one.data_type(), other.data_type(), depth + 1)?),
        (one, other) if one.is_integer() && other.is_integer() => one.clone(),
        (one, other) if one.is_integer() && other.is_floating() => DataType::Float64,
        (one, other) if one.is_floating() && (other.is_integer() || other.is_floating()) => one.clone(),
        (DataType::Decimal128(_, _), other) if other.is_integer() || other.is_floating() => one.clone(),
        // JSON has dates and timestamps as texts.
        (one, DataType::Utf8) if one.is_temporal() => one.clone(),
        _ => return None,
    })
}

/// Infers the type of a JSON value; `Null` if it has none.
pub(crate) fn shown_by(raw: &RawValue) -> Option<DataType> {
    shown(raw.get(), 0)
}

fn shown(raw: &str, depth: usize) -> Option<DataType> {
    if depth > DEPTH_LIMIT {
        return None;
    }
    Some(match raw.as_bytes().first()? {
        b'n' => DataType::Null,
        b't' | b'f' => DataType::Boolean,
        b'"' => DataType::Utf8,
        b'{' => {
            let Object(entries) = serde_json::from_str(raw).ok()?;
            let mut fields: Vec<Field> = Vec::with_capacity(entries.len());
            for (name, value) in entries {
                let data_type = shown(value.get(), depth + 1)?;
                if !fields.iter().any(|field| *field.name() == name.0) {
                    fields.push(Field::new(name.0, data_type, true));
                }
            }
            DataType::Struct(fields.into())
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
            let mut item = DataType::Null;
            for value in items {
                item = merged_shown(&item, &shown(value.get(), depth + 1)?)?;
            }
            list_of(item)
        }
        _ if raw.parse::<i64>().is_ok() => DataType::Int64,
        _ => DataType::Float64,
    })
}

/// A common type for the inferred types of two JSON values.
pub(crate) fn merged_shown(one: &DataType, other: &DataType) -> Option<DataType> {
    merged(one, other, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> DataType {
        shown_by(&serde_json::from_str::<Box<RawValue>>(json).unwrap()).unwrap()
    }

    fn types() -> ActionTypes {
        let add = Fields::from(vec![
            Field::new("path", DataType::Utf8, true),
            Field::new("tags", text_map(DataType::Utf8), true),
        ]);
        ActionTypes::new(&Fields::from(vec![Field::new("add", DataType::Struct(add), true)]))
    }

    #[test]
    fn test_a_new_field_is_taken_up_once() {
        let mut types = types();
        assert!(types.widen("add", "more", &of(r#"{"x":1,"y":[]}"#)).unwrap());
        assert!(!types.widen("add", "more", &of(r#"{"x":2}"#)).unwrap());
        assert!(types.widen("add", "more", &of(r#"{"y":[2],"z":{}}"#)).unwrap());
        assert!(types.widen("add", "more", &of(r#"{"z":{"k":1}}"#)).unwrap());
        assert_eq!(types.of("add").unwrap().len(), 3);
    }

    #[test]
    fn test_what_was_always_empty_has_a_type_of_its_own() {
        let mut types = types();
        types.widen("add", "more", &of(r#"{"x":{},"y":[],"z":null}"#)).unwrap();
        let types = types.settled();
        let DataType::Struct(fields) = types.of("add").unwrap()[2].data_type() else {
            panic!("{types:?}");
        };
        let found: Vec<&DataType> = fields.iter().map(|field| field.data_type()).collect();
        assert_eq!(
            found,
            [&text_map(DataType::Utf8), &list_of(DataType::Utf8), &DataType::Utf8]
        );
    }

    #[test]
    fn test_what_has_two_types_is_an_error() {
        let mut types = types();
        types.widen("add", "more", &of("1")).unwrap();
        assert!(types.widen("add", "more", &of("1.5")).unwrap());
        let error = types.widen("add", "more", &of("\"a\"")).unwrap_err().to_string();
        assert!(
            error.contains("'more' of add") && error.contains("different types"),
            "{error}"
        );
    }

    #[test]
    fn test_an_object_fits_a_map() {
        let mut types = types();
        assert!(!types.widen("add", "tags", &of(r#"{"a":"b","c":null,"d":1}"#)).unwrap());
        assert!(types.widen("add", "tags", &of(r#"{"a":[1]}"#)).is_err());
        assert!(!types.widen("add", "stats", &of("1")).unwrap());
    }
}
