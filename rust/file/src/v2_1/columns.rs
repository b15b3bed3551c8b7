//! Maps fields to the columns of a 2.1 or 2.2 file.

use std::collections::BTreeMap;

use crate::schema::{Field, Schema};

/// True for a field that one column holds with all that lies below it.
pub(crate) fn is_leaf(field: &Field) -> bool {
    field.children.is_empty() || field.is_packed_struct() || field.is_blob()
}

/// Numbers the columns of a file that holds `schema` alone: its leaves, in order.
pub(crate) fn assign_columns(schema: &Schema) -> BTreeMap<i32, usize> {
    fn visit(field: &Field, columns: &mut BTreeMap<i32, usize>) {
        if is_leaf(field) {
            columns.insert(field.id, columns.len());
        } else {
            field.children.iter().for_each(|child| visit(child, columns));
        }
    }
    let mut columns = BTreeMap::new();
    schema.fields.iter().for_each(|field| visit(field, &mut columns));
    columns
}
