//! Texts as views: sixteen bytes for each, which hold a short text or point into the bytes of all.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use crate::error::{Result, TableError};

/// The key of a field's metadata that names an extension type, whose storage is what it is.
const EXTENSION: &str = "ARROW:extension:name";

/// A schema with views for its texts, those in structs, lists and maps too; not those of dictionaries and extension types.
pub(super) fn with_views(schema: &Schema) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(field_with_views).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn field_with_views(field: &FieldRef) -> FieldRef {
    if field.metadata().contains_key(EXTENSION) {
        return field.clone();
    }
    let data_type = match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field_with_views).collect()),
        DataType::List(item) => DataType::List(field_with_views(item)),
        DataType::LargeList(item) => DataType::LargeList(field_with_views(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field_with_views(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(field_with_views(entries), *sorted),
        _ => return field.clone(),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// A batch with views for its texts.
pub fn string_views(batch: RecordBatch) -> Result<RecordBatch> {
    let schema = with_views(batch.schema_ref());
    viewed(batch, &schema)
}

/// A batch as one of `schema`, which has views for its texts. The bytes of the texts are not copied.
pub(super) fn viewed(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let failed = |e: arrow_schema::ArrowError| TableError::invalid(e.to_string());
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| match column.data_type() == field.data_type() {
        true => Ok(column.clone()),
        false => arrow_cast::cast(column, field.data_type()),
    });
    let columns = columns
        .collect::<std::result::Result<Vec<ArrayRef>, _>>()
        .map_err(failed)?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(failed)
}
