//! Conforms the columns of a base checkpoint to those of the new one: fields by name, types cast.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{new_null_array, Array, ArrayRef, ListArray, MapArray, StructArray};
use arrow_cast::{cast_with_options, CastOptions};
use arrow_schema::{ArrowError, DataType};

/// Conforms an array to a type. Missing fields are null; values that the type cannot hold are null with `safe`, otherwise an error.
pub(crate) fn conform(array: &ArrayRef, data_type: &DataType, safe: bool) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == data_type {
        return Ok(array.clone());
    }
    match (array.data_type(), data_type) {
        (DataType::Null, _) => Ok(new_null_array(data_type, array.len())),
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let array = array.as_struct();
            let columns = fields.iter().map(|field| match array.column_by_name(field.name()) {
                Some(column) => conform(column, field.data_type(), safe),
                None => Ok(new_null_array(field.data_type(), array.len())),
            });
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let nulls = array.nulls().cloned();
            Ok(Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns,
                nulls,
                array.len(),
            )?))
        }
        (DataType::Map(_, _), DataType::Map(entries, sorted)) => {
            let array = array.as_map();
            let DataType::Struct(fields) = entries.data_type() else {
                return Err(ArrowError::SchemaError("expected a map with entries".to_owned()));
            };
            let columns = fields.iter().zip([array.keys(), array.values()]);
            let columns = columns.map(|(field, column)| conform(column, field.data_type(), safe));
            let inner = StructArray::try_new(fields.clone(), columns.collect::<Result<Vec<_>, _>>()?, None)?;
            let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
            Ok(Arc::new(MapArray::try_new(
                entries.clone(),
                offsets,
                inner,
                nulls,
                *sorted,
            )?))
        }
        (DataType::List(_), DataType::List(item)) => {
            let array = array.as_list::<i32>();
            let inner = conform(array.values(), item.data_type(), safe)?;
            let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
            Ok(Arc::new(ListArray::try_new(item.clone(), offsets, inner, nulls)?))
        }
        _ => {
            let options = CastOptions {
                safe,
                ..CastOptions::default()
            };
            cast_with_options(array, data_type, &options)
        }
    }
}
