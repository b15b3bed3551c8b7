//! Resolves field positions to names.
//!
//! A Substrait schema keeps its names apart from its types, in one list, depth first. Only a struct's fields have names.
//!
//! By the specification the list includes the fields of structs within lists and maps; pyarrow leaves those out. Only the number of names
//! tells which of the two it is. Such a field cannot be referred to by position in either case.

use std::vec::IntoIter;

use super::messages::{Kind, NamedStruct, Type};
use crate::error::{ExprError, Result};

/// A field and its nested fields, in the order of their positions.
#[derive(Debug)]
pub(super) struct NamedField {
    pub(super) name: String,
    pub(super) children: Vec<NamedField>,
}

/// The fields of a schema.
pub(super) fn named_fields(schema: &NamedStruct) -> Result<Vec<NamedField>> {
    let types = schema
        .structure
        .as_ref()
        .map_or(&[][..], |structure| structure.types.as_slice());
    let mut names = schema.names.clone().into_iter();
    let fields = take(types, &mut names, Elements::Named);
    match fields {
        Ok(fields) if names.len() == 0 => Ok(fields),
        _ => take(types, &mut schema.names.clone().into_iter(), Elements::Nameless),
    }
}

/// Whether the names include those of structs within lists and maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Elements {
    Named,
    Nameless,
}

fn take(types: &[Type], names: &mut IntoIter<String>, elements: Elements) -> Result<Vec<NamedField>> {
    types
        .iter()
        .map(|field| {
            let name = names.next().ok_or_else(|| {
                ExprError::invalid("expected a name for each field of the Substrait schema, found fewer")
            })?;
            Ok(NamedField {
                name,
                children: within(field, names, elements)?,
            })
        })
        .collect()
}

/// The named fields inside a type; for a list, those of its elements.
fn within(field: &Type, names: &mut IntoIter<String>, elements: Elements) -> Result<Vec<NamedField>> {
    match &field.kind {
        Some(Kind::Struct(structure)) => take(&structure.types, names, elements),
        Some(Kind::List(_) | Kind::Map(_)) if elements == Elements::Nameless => Ok(Vec::new()),
        Some(Kind::List(list)) => list
            .element
            .as_ref()
            .map_or(Ok(Vec::new()), |element| within(element, names, elements)),
        Some(Kind::Map(map)) => {
            // Their names must be consumed, though no reference can reach them.
            let mut fields = Vec::new();
            for part in [&map.key, &map.value].into_iter().flatten() {
                fields.extend(within(part, names, elements)?);
            }
            Ok(fields)
        }
        _ => Ok(Vec::new()),
    }
}
