//! The parsers of this module, exposed for fuzzing.

use std::sync::Arc;

use arrow_array::Array;
use arrow_schema::{DataType, Field, Fields};
use bytes::Bytes;
use serde_json::value::RawValue;

use super::action_types::{shown_by, ActionTypes};
use super::json_columns::{column, Misfit};
use super::source::parse;
use crate::error::{DeltaError, Result};
use crate::path::TableRoot;

/// Converts the lines of a commit to columns with all their fields; returns the number of rows.
pub(crate) fn parsed_columns(bytes: &Bytes, root: &Arc<TableRoot>) -> Result<u64> {
    let group = parse(vec![("fuzz".to_owned(), bytes.clone())], root)?;
    let action = |name: &str| Field::new(name, DataType::Struct(Fields::empty()), true);
    let mut types = ActionTypes::new(&Fields::from(vec![action("add"), action("remove")]));
    for (kind, name, shown) in &group.shown {
        types.widen(kind.name(), name, shown)?;
    }
    let types = types.settled();
    let mut rows = 0;
    for (name, pieces) in [("add", &group.adds), ("remove", &group.removes)] {
        for piece in pieces {
            if let Some(fields) = types.of(name) {
                rows += piece.to_array(fields)?.len() as u64;
            }
        }
    }
    Ok(rows)
}

/// Whether a text is JSON of a type. JSON that does not fit its own inferred type is an error.
pub(crate) fn typed_json(text: &str, data_type: &DataType) -> Result<bool> {
    let Ok(raw) = serde_json::from_str::<&RawValue>(text) else {
        return Ok(false);
    };
    let values = [(raw.get() != "null").then(|| raw.get())];
    let none = Field::new("add", DataType::Struct(Fields::empty()), true);
    let mut types = ActionTypes::new(&Fields::from(vec![none]));
    if let Some(shown) = shown_by(raw) {
        types.widen("add", "x", &shown)?;
        if let Some(own) = types.settled().of("add").and_then(|fields| fields.first().cloned()) {
            // A number may be too large for every type, so errors are ignored here.
            let _ = column(&values, own.data_type(), Misfit::Error);
        }
    }
    let array = column(&values, data_type, Misfit::Null).map_err(DeltaError::invalid)?;
    Ok(array.null_count() == 0)
}
