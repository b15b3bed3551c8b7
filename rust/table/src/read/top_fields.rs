//! The top-level fields of a schema by name.

use std::collections::HashMap;

use esker_file::schema::{Field, Schema};

/// How many names are looked for one by one before a map is made.
const FEW: usize = 8;

/// Finds top-level fields by name: the first, if several have it.
#[derive(Debug)]
pub(super) struct TopFields<'a> {
    schema: &'a Schema,
    by_name: Option<HashMap<&'a str, &'a Field>>,
}

impl<'a> TopFields<'a> {
    /// For about so many names to look for.
    pub(super) fn of(schema: &'a Schema, names: usize) -> Self {
        let by_name = (names > FEW).then(|| {
            let mut by_name = HashMap::with_capacity(schema.fields.len());
            for field in &schema.fields {
                by_name.entry(field.name.as_str()).or_insert(field);
            }
            by_name
        });
        TopFields { schema, by_name }
    }

    pub(super) fn schema(&self) -> &'a Schema {
        self.schema
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Field> {
        match &self.by_name {
            Some(by_name) => by_name.get(name).copied(),
            None => self.schema.field(name),
        }
    }

    /// The field that a dotted path names, as [`Schema::field_by_path`].
    pub(super) fn by_path(&self, path: &str) -> Option<&'a Field> {
        self.get(path).or_else(|| self.schema.field_by_path(path))
    }
}
