//! Field positions to names.
//!
//! A Substrait schema keeps its names apart from its types: all of them, depth first. Only structs have names within.

use std::vec::IntoIter;

use super::messages::{Kind, NamedStruct, Type};
use crate::error::{ExprError, Result};

/// A field and the fields within, in the order that positions count.
#[derive(Debug)]
pub(super) struct NamedField {
    pub(super) name: String,
    pub(super) children: Vec<NamedField>,
}

/// The fields of a schema.
pub(super) fn named_fields(schema: &NamedStruct) -> Result<Vec<NamedField>> {
    let mut names = schema.names.clone().into_iter();
    let types = schema
        .structure
        .as_ref()
        .map_or(&[][..], |structure| structure.types.as_slice());
    take(types, &mut names)
}

fn take(types: &[Type], names: &mut IntoIter<String>) -> Result<Vec<NamedField>> {
    types
        .iter()
        .map(|field| {
            let name = names.next().ok_or_else(|| {
                ExprError::invalid("expected a name for each field of the Substrait schema, found fewer")
            })?;
            Ok(NamedField {
                name,
                children: within(field, names)?,
            })
        })
        .collect()
}

/// The named fields inside a type; those of a list are the fields of its elements.
fn within(field: &Type, names: &mut IntoIter<String>) -> Result<Vec<NamedField>> {
    match &field.kind {
        Some(Kind::Struct(structure)) => take(&structure.types, names),
        Some(Kind::List(list)) => list
            .element
            .as_ref()
            .map_or(Ok(Vec::new()), |element| within(element, names)),
        Some(Kind::Map(map)) => {
            // Their names must be taken off the list, whether or not anybody can refer to them.
            let mut fields = Vec::new();
            for part in [&map.key, &map.value].into_iter().flatten() {
                fields.extend(within(part, names)?);
            }
            Ok(fields)
        }
        _ => Ok(Vec::new()),
    }
}
