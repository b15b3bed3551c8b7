//! The path from a top-level field to one of its leaves.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, GenericListArray, ListArray, OffsetSizeTrait, StructArray};
use arrow_schema::{DataType, Field as ArrowField, Fields};

use super::columns::is_leaf;
use super::hints::Hints;
use crate::error::{FileError, Result};
use crate::schema::Field;

/// One step on the way down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// To a field of a struct, which may be null or not.
    Struct { field: usize, nullable: bool },
    /// To the items of a list.
    List,
    /// To the items of a large list.
    LargeList,
    /// To the entries of a map; nothing but a list once it is pruned.
    Map,
    /// To the items of a fixed-size list, so many each.
    FixedSizeList(usize),
}

/// A leaf: a column of the file.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    /// The field itself.
    pub(crate) field: Field,
    /// Its name, dotted below structs and lists.
    pub(crate) name: String,
    /// Its type.
    pub(crate) data_type: DataType,
    /// The way to it.
    pub(crate) path: Vec<Step>,
    /// What its metadata asks for, or that of fields around it.
    pub(crate) hints: Hints,
}

/// The leaves of a top-level field, in the order of their columns.
pub(crate) fn leaves(field: &Field) -> Result<Vec<Leaf>> {
    let mut out = Vec::new();
    visit(field, field.name.clone(), Vec::new(), &Hints::default(), &mut out)?;
    Ok(out)
}

fn visit(field: &Field, name: String, path: Vec<Step>, around: &Hints, out: &mut Vec<Leaf>) -> Result<()> {
    let data_type = field.stored_type()?;
    let hints = Hints::of(field, &name, around)?;
    if is_leaf(field) {
        out.push(Leaf {
            field: field.clone(),
            name,
            data_type,
            path,
            hints,
        });
        return Ok(());
    }
    for (index, child) in field.children.iter().enumerate() {
        let step = match &data_type {
            DataType::Struct(_) => Step::Struct {
                field: index,
                nullable: field.nullable,
            },
            DataType::LargeList(_) => Step::LargeList,
            DataType::Map(_, _) => Step::Map,
            DataType::FixedSizeList(_, size) => Step::FixedSizeList(usize::try_from(*size).unwrap_or(0)),
            _ => Step::List,
        };
        let mut path = path.clone();
        path.push(step);
        visit(child, format!("{name}.{}", child.name), path, &hints, out)?;
    }
    Ok(())
}

/// Values of the leaf for each top-level row below fixed-size lists of structs; elsewhere 1.
pub(crate) fn stride(path: &[Step]) -> u64 {
    path.iter().fold(1, |stride: u64, step| match step {
        Step::FixedSizeList(size) => stride.saturating_mul(*size as u64),
        _ => stride,
    })
}

/// The array with nothing in it but the way to the leaf: structs of one field.
pub(crate) fn pruned(array: &ArrayRef, path: &[Step]) -> Result<ArrayRef> {
    let Some((step, rest)) = path.split_first() else {
        return Ok(array.clone());
    };
    match step {
        Step::Struct { field: index, .. } => {
            let array = array.as_struct();
            let child = array.columns().get(*index);
            let field = array.fields().get(*index);
            let (child, field) = child.zip(field).ok_or_else(|| {
                FileError::invalid(format!(
                    "expected a struct with field {index}, found {}",
                    array.data_type()
                ))
            })?;
            let child = pruned(child, rest)?;
            let field = field.as_ref().clone().with_data_type(child.data_type().clone());
            let fields = Fields::from(vec![field.with_nullable(true)]);
            let length = array.len();
            let only = StructArray::try_new_with_length(fields, vec![child], array.nulls().cloned(), length);
            Ok(Arc::new(only.map_err(odd)?))
        }
        Step::List => pruned_list::<i32>(array, rest),
        Step::LargeList => pruned_list::<i64>(array, rest),
        Step::Map => {
            let (_, offsets, entries, nulls, _) = array.as_map().clone().into_parts();
            let entries = pruned(&(Arc::new(entries) as ArrayRef), rest)?;
            let field = ArrowField::new("entries", entries.data_type().clone(), true);
            let list = ListArray::try_new(Arc::new(field), offsets, entries, nulls);
            Ok(Arc::new(list.map_err(odd)?))
        }
        Step::FixedSizeList(_) => {
            let (field, size, values, nulls) = array.as_fixed_size_list().clone().into_parts();
            let values = pruned(&values, rest)?;
            let field = field.as_ref().clone().with_data_type(values.data_type().clone());
            let list = FixedSizeListArray::try_new(Arc::new(field.with_nullable(true)), size, values, nulls);
            Ok(Arc::new(list.map_err(odd)?))
        }
    }
}

fn pruned_list<O: OffsetSizeTrait>(array: &ArrayRef, rest: &[Step]) -> Result<ArrayRef> {
    if !rest.iter().any(|step| matches!(step, Step::Struct { .. } | Step::Map)) {
        return Ok(array.clone());
    }
    let list = array.as_list::<O>();
    let (field, offsets, values, nulls) = list.clone().into_parts();
    let values = pruned(&values, rest)?;
    let field = field.as_ref().clone().with_data_type(values.data_type().clone());
    let list = GenericListArray::<O>::try_new(Arc::new(field.with_nullable(true)), offsets, values, nulls);
    Ok(Arc::new(list.map_err(odd)?))
}

fn odd(error: arrow_schema::ArrowError) -> FileError {
    FileError::invalid(format!("expected arrays that fit their type, found others ({error})"))
}
