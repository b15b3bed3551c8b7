//! Completes structs of the source that lack fields of the table's: with the values of the table's row, or with nulls in new rows.
//!
//! Such a struct changes only the fields that it has. So the result is null only where both sides are: a null in the source makes the
//! source's own fields null and leaves the others as they are.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{new_null_array, Array, ArrayRef, GenericListArray, OffsetSizeTrait, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field};

use crate::error::{Result, TableError};
use crate::struct_parts::{child_of, null_in_both};

fn failed(error: ArrowError) -> TableError {
    TableError::invalid(format!("the structs of the rows to write cannot be completed: {error}"))
}

/// Whether structs of `found` lack fields of those of `wanted`. Structs within lists are not checked, as lists are replaced as a whole.
pub(super) fn is_partial(found: &DataType, wanted: &DataType) -> bool {
    let (DataType::Struct(found), DataType::Struct(wanted)) = (found, wanted) else {
        return false;
    };
    wanted.iter().any(|field| {
        let own = found.iter().find(|own| own.name() == field.name());
        own.is_none_or(|own| is_partial(own.data_type(), field.data_type()))
    })
}

/// A column of the source, completed to the table's type. `target` holds the values of the matched rows of the table; `None` for new rows.
pub(super) fn completed(source: &ArrayRef, target: Option<&ArrayRef>, wanted: &Field) -> Result<ArrayRef> {
    let DataType::Struct(fields) = wanted.data_type() else {
        return Ok(source.clone());
    };
    let Some(given) = source.as_struct_opt() else {
        return Ok(source.clone());
    };
    if !is_partial(source.data_type(), wanted.data_type()) {
        return Ok(source.clone());
    }
    let kept = target.and_then(|target| target.as_struct_opt());
    let nulls = match kept {
        Some(kept) => null_in_both(given.nulls(), kept.nulls()),
        None => given.nulls().cloned(),
    };
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        let own = kept
            .and_then(|kept| child_of(kept, field.name()))
            .transpose()
            .map_err(failed)?;
        let column = match child_of(given, field.name()).transpose().map_err(failed)? {
            Some(column) => completed(&column, own.as_ref(), field)?,
            None => match &own {
                Some(own) => fit(own, field.data_type()).ok_or_else(|| {
                    let (name, found, wanted) = (field.name(), own.data_type(), field.data_type());
                    TableError::invalid(format!("expected field '{name}' of type {wanted}, found {found}"))
                })?,
                None => new_null_array(field.data_type(), given.len()),
            },
        };
        check_nulls(&column, nulls.as_ref(), field)?;
        columns.push(column);
    }
    let fields = fields.iter().zip(&columns);
    let fields =
        fields.map(|(field, column)| Field::new(field.name(), column.data_type().clone(), field.is_nullable()));
    let whole = StructArray::try_new(fields.collect(), columns, nulls).map_err(failed)?;
    Ok(Arc::new(whole))
}

fn check_nulls(column: &ArrayRef, parent: Option<&NullBuffer>, field: &Field) -> Result<()> {
    let Some(nulls) = column.logical_nulls().filter(|_| !field.is_nullable()) else {
        return Ok(());
    };
    let is_valid = |row: usize| parent.is_none_or(|parent| parent.is_valid(row));
    let found = (0..nulls.len())
        .filter(|row| nulls.is_null(*row) && is_valid(*row))
        .count();
    if found == 0 {
        return Ok(());
    }
    Err(TableError::SchemaMismatch {
        column: field.name().clone(),
        expected: "no nulls, the field is not nullable".into(),
        found: format!("{found} nulls"),
    })
}

/// Converts a column from the form in which it is read to that in which it is written: blobs are read as bytes and written as a struct with
/// a URI field.
pub(super) fn fit(column: &ArrayRef, wanted: &DataType) -> Option<ArrayRef> {
    match wanted {
        _ if column.data_type().equals_datatype(wanted) => Some(column.clone()),
        DataType::Struct(fields) if !matches!(column.data_type(), DataType::Struct(_)) => {
            let child = |field: &Arc<Field>| match field.name().as_str() {
                "data" => fit(column, field.data_type()),
                _ => Some(new_null_array(field.data_type(), column.len())),
            };
            let children = fields.iter().map(child).collect::<Option<Vec<_>>>()?;
            let blobs = StructArray::try_new(fields.clone(), children, column.logical_nulls()).ok()?;
            Some(Arc::new(blobs))
        }
        DataType::Struct(fields) => {
            let found = column.as_struct_opt()?;
            let child = |field: &Arc<Field>| fit(found.column_by_name(field.name())?, field.data_type());
            let children = fields.iter().map(child).collect::<Option<Vec<_>>>()?;
            let fitted = StructArray::try_new(fields.clone(), children, found.nulls().cloned()).ok()?;
            Some(Arc::new(fitted))
        }
        DataType::List(item) => fit_list::<i32>(column, item),
        DataType::LargeList(item) => fit_list::<i64>(column, item),
        _ => arrow_cast::cast(column, wanted).ok(),
    }
}

fn fit_list<O: OffsetSizeTrait>(column: &ArrayRef, item: &Arc<Field>) -> Option<ArrayRef> {
    let Some(found) = column.as_list_opt::<O>() else {
        return arrow_cast::cast(column, &GenericListArray::<O>::DATA_TYPE_CONSTRUCTOR(item.clone())).ok();
    };
    let values = fit(found.values(), item.data_type())?;
    let offsets = found.offsets().clone();
    let fitted = GenericListArray::try_new(item.clone(), offsets, values, found.nulls().cloned()).ok()?;
    Some(Arc::new(fitted))
}
