//! Whole batches between `arrow.json`, which is text, and `lance.json`, which is JSONB; at any depth of structs, lists and maps.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::LargeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, GenericListArray, LargeStringArray, MapArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions,
    StringArray, StructArray,
};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};

use super::{decode, encode};
use crate::error::{ExprError, Result};

const NAME: &str = "ARROW:extension:name";
const METADATA: &str = "ARROW:extension:metadata";
const TEXT: &str = "arrow.json";
const BINARY: &str = "lance.json";

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Text,
    Binary,
}

/// The batch with its JSON columns as JSONB. `first_row` is the number of its first row, for messages.
pub fn to_jsonb(batch: &RecordBatch, first_row: usize) -> Result<RecordBatch> {
    converted(batch, Form::Binary, first_row)
}

/// The batch with its JSON columns as text.
pub fn to_text(batch: &RecordBatch) -> Result<RecordBatch> {
    converted(batch, Form::Text, 0)
}

fn converted(batch: &RecordBatch, form: Form, first_row: usize) -> Result<RecordBatch> {
    let schema = batch.schema_ref();
    let parts = schema.fields().iter().zip(batch.columns());
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (field, column) in parts {
        let to = field_of(field, form);
        columns.push(array_of(column, field, &to, form, first_row)?);
        fields.push(to);
    }
    let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(failed)
}

fn failed(error: arrow_schema::ArrowError) -> ExprError {
    ExprError::invalid(format!("cannot convert JSON columns: {error}"))
}

fn is_json(field: &Field, form: Form) -> bool {
    let name = field.metadata().get(NAME).map(String::as_str);
    match form {
        Form::Binary => name == Some(TEXT),
        Form::Text => name == Some(BINARY) && matches!(field.data_type(), DataType::LargeBinary | DataType::Binary),
    }
}

/// The field in the other form.
fn field_of(field: &FieldRef, form: Form) -> FieldRef {
    let changed = |data_type: DataType| Arc::new(field.as_ref().clone().with_data_type(data_type));
    if is_json(field, form) {
        let (data_type, name) = match form {
            Form::Binary => (DataType::LargeBinary, BINARY),
            Form::Text => (DataType::Utf8, TEXT),
        };
        let mut metadata: HashMap<String, String> = field.metadata().clone();
        metadata.insert(NAME.to_owned(), name.to_owned());
        metadata.insert(METADATA.to_owned(), String::new());
        return Arc::new(changed(data_type).as_ref().clone().with_metadata(metadata));
    }
    match field.data_type() {
        DataType::Struct(children) => {
            let children: Fields = children.iter().map(|child| field_of(child, form)).collect();
            changed(DataType::Struct(children))
        }
        DataType::List(item) => changed(DataType::List(field_of(item, form))),
        DataType::LargeList(item) => changed(DataType::LargeList(field_of(item, form))),
        DataType::Map(item, sorted) => changed(DataType::Map(field_of(item, form), *sorted)),
        _ => Arc::clone(field),
    }
}

fn array_of(array: &ArrayRef, from: &FieldRef, to: &FieldRef, form: Form, first_row: usize) -> Result<ArrayRef> {
    if from.data_type() == to.data_type() {
        return Ok(Arc::clone(array));
    }
    if is_json(from, form) {
        return match form {
            Form::Binary => binary(array, from.name(), first_row),
            Form::Text => text(array, from.name()),
        };
    }
    match (from.data_type(), to.data_type()) {
        (DataType::Struct(old), DataType::Struct(new)) => {
            let structs = array.as_struct();
            let columns = structs.columns().iter().zip(old.iter().zip(new));
            let columns = columns.map(|(column, (from, to))| array_of(column, from, to, form, first_row));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let nulls = structs.nulls().cloned();
            let made = StructArray::try_new_with_length(new.clone(), columns, nulls, structs.len());
            Ok(Arc::new(made.map_err(failed)?))
        }
        (DataType::List(old), DataType::List(new)) => list::<i32>(array, old, new, form),
        (DataType::LargeList(old), DataType::LargeList(new)) => list::<i64>(array, old, new, form),
        (DataType::Map(old, sorted), DataType::Map(new, _)) => {
            let maps = array.as_map();
            let entries: ArrayRef = Arc::new(maps.entries().clone());
            let entries = array_of(&entries, old, new, form, 0)?;
            let (offsets, nulls) = (maps.offsets().clone(), maps.nulls().cloned());
            let made = MapArray::try_new(Arc::clone(new), offsets, entries.as_struct().clone(), nulls, *sorted);
            Ok(Arc::new(made.map_err(failed)?))
        }
        _ => Ok(Arc::clone(array)),
    }
}

fn list<Offset: OffsetSizeTrait>(array: &ArrayRef, from: &FieldRef, to: &FieldRef, form: Form) -> Result<ArrayRef> {
    let lists = array.as_list::<Offset>();
    let values = array_of(lists.values(), from, to, form, 0)?;
    let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
    let made = GenericListArray::<Offset>::try_new(Arc::clone(to), offsets, values, nulls);
    Ok(Arc::new(made.map_err(failed)?))
}

fn binary(array: &ArrayRef, column: &str, first_row: usize) -> Result<ArrayRef> {
    let texts = cast(array, &DataType::LargeUtf8).map_err(failed)?;
    let texts: &LargeStringArray = texts.as_string();
    let mut out = LargeBinaryBuilder::with_capacity(texts.len(), texts.values().len());
    for (row, text) in texts.iter().enumerate() {
        match text {
            None => out.append_null(),
            Some(text) => out.append_value(encode(text).map_err(|why| {
                ExprError::invalid(format!(
                    "column '{column}', row {}: Failed to encode JSON: {why}",
                    first_row.saturating_add(row)
                ))
            })?),
        }
    }
    Ok(Arc::new(out.finish()))
}

fn text(array: &ArrayRef, column: &str) -> Result<ArrayRef> {
    let values = cast(array, &DataType::LargeBinary).map_err(failed)?;
    let mut texts = Vec::with_capacity(values.len());
    let mut bytes = 0_usize;
    for (row, value) in values.as_binary::<i64>().iter().enumerate() {
        let text = value.map(decode).transpose();
        let text =
            text.map_err(|why| ExprError::invalid(format!("column '{column}', row {row} of its batch: {why}")))?;
        bytes = bytes.saturating_add(text.as_ref().map_or(0, String::len));
        texts.push(text);
    }
    if i32::try_from(bytes).is_err() {
        return Err(ExprError::unsupported(format!(
            "column '{column}': expected less than 2 GiB of JSON text in a batch, found {bytes} bytes; read with a smaller batch_size"
        )));
    }
    Ok(Arc::new(StringArray::from(texts)))
}
