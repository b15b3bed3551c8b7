//! The tree of fields and the ways to walk it.

use std::collections::BTreeMap;

use super::blob::BlobView;
use super::path::parts_of;

/// Field metadata that marks a struct as packed: its fields lie row by row in one column.
const PACKED_KEYS: [&str; 2] = ["packed", "lance-encoding:packed"];

/// The values that pylance takes for true, ignoring case.
const YES: [&[u8]; 5] = [b"true", b"1", b"yes", b"on", b"y"];

/// One node of the schema tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Field {
    /// Unique in the table; -1 while it is not assigned.
    pub id: i32,
    /// The column's name, or "item" and the like below a list.
    pub name: String,
    /// The type as the format spells it, for example "int32" or "list.struct".
    pub logical_type: String,
    /// May hold nulls.
    pub nullable: bool,
    /// Key-values of the Arrow field; keys that start with "lance-encoding:" steer the encoder.
    pub metadata: BTreeMap<String, Vec<u8>>,
    /// The fields of a struct, the item of a list; empty for anything else.
    pub children: Vec<Field>,
    /// Part of the key that concurrent upserts agree not to duplicate.
    pub unenforced_primary_key: bool,
    /// Its place in that key, from 1; those of place 0 come last, by their ids.
    pub primary_key_position: u32,
    /// Its place in the key that rows are clustered by, from 1; 0 where it is not part of it.
    pub clustering_key_position: u32,
    /// Where a 0.1 file keeps the values of a dictionary column: (offset, length).
    pub dictionary: Option<(i64, i64)>,
    /// The form in which a blob column is read; `None` for the stored form.
    pub blob_view: Option<BlobView>,
}

impl Field {
    /// True for structs.
    pub fn is_struct(&self) -> bool {
        self.logical_type == "struct"
    }

    /// True for lists and large lists.
    pub fn is_list(&self) -> bool {
        matches!(
            self.logical_type.as_str(),
            "list" | "list.struct" | "large_list" | "large_list.struct"
        )
    }

    /// True for a struct whose fields lie row by row in one column.
    pub fn is_packed_struct(&self) -> bool {
        self.is_struct() && self.packed_mark().is_some()
    }

    /// The metadata value by which the field is marked as packed, be it a struct or not.
    pub fn packed_mark(&self) -> Option<&[u8]> {
        let values = PACKED_KEYS.iter().filter_map(|key| self.metadata.get(*key));
        let mut marks = values.filter(|value| YES.iter().any(|yes| value.eq_ignore_ascii_case(yes)));
        marks.next().map(|value| value.as_slice())
    }

    /// A metadata value as text.
    pub fn metadata_text(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Calls `visit` on this field and all below it, parents first.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Field)) {
        visit(self);
        for child in &self.children {
            child.walk(visit);
        }
    }

    fn walk_mut(&mut self, change: &mut dyn FnMut(&mut Field)) {
        change(self);
        self.children.iter_mut().for_each(|child| child.walk_mut(change));
    }

    fn assign_ids(&mut self, next: &mut i32) {
        self.id = *next;
        *next = next.saturating_add(1);
        for child in &mut self.children {
            child.assign_ids(next);
        }
    }

    fn keep(&self, ids: &dyn Fn(i32) -> bool) -> Option<Field> {
        if ids(self.id) {
            return Some(self.clone());
        }
        let children: Vec<Field> = self.children.iter().filter_map(|child| child.keep(ids)).collect();
        if children.is_empty() {
            return None;
        }
        Some(Field {
            children,
            ..self.clone()
        })
    }
}

/// The fields of a file or table, and the Arrow schema's own key-values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schema {
    /// Top-level fields.
    pub fields: Vec<Field>,
    /// The Arrow schema's key-values.
    pub metadata: BTreeMap<String, Vec<u8>>,
}

impl Schema {
    /// All fields, parents before their children.
    pub fn flat_fields(&self) -> Vec<&Field> {
        let mut all = Vec::new();
        for field in &self.fields {
            field.walk(&mut |f| all.push(f));
        }
        all
    }

    /// Calls `change` on all fields, parents first.
    pub fn for_each_mut(&mut self, change: &mut dyn FnMut(&mut Field)) {
        self.fields.iter_mut().for_each(|field| field.walk_mut(change));
    }

    /// The highest field id, -1 if there are no fields.
    pub fn max_field_id(&self) -> i32 {
        self.flat_fields().iter().map(|f| f.id).max().unwrap_or(-1)
    }

    /// A top-level field by name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// The field that a dotted path names; a name that itself holds dots is found whole first.
    pub fn field_by_path(&self, path: &str) -> Option<&Field> {
        if let Some(field) = self.field(path) {
            return Some(field);
        }
        let mut parts = parts_of(path).into_iter();
        let mut field = self.field(&parts.next()?)?;
        for part in parts {
            field = field.children.iter().find(|f| f.name == part)?;
        }
        Some(field)
    }

    /// Numbers all fields from `first`, parents before their children.
    pub fn assign_ids(&mut self, first: i32) {
        let mut next = first;
        for field in &mut self.fields {
            field.assign_ids(&mut next);
        }
    }

    /// The part of the schema that holds the fields `ids` names: whole where a node is named, its parents as far as needed.
    pub fn project(&self, ids: &dyn Fn(i32) -> bool) -> Schema {
        Schema {
            fields: self.fields.iter().filter_map(|field| field.keep(ids)).collect(),
            metadata: self.metadata.clone(),
        }
    }
}
