//! Checks column names.
//!
//! A name is used in paths (`a.b`, `` `a b`.c ``), in predicates, in Arrow's C data interface, and next to the system columns of a scan.
//! Names that would be ambiguous or invalid there are refused before they are written.

use std::collections::{BTreeSet, HashSet};

use super::field::{Field, Schema};
use crate::error::{FileError, Result};

/// The system columns that a scan of a table adds.
const ADDED: [&str; 5] = [
    "_rowid",
    "_rowaddr",
    "_rowoffset",
    "_row_created_at_version",
    "_row_last_updated_at_version",
];

impl Schema {
    /// Refuses names that no file can hold: duplicates among siblings, a NUL, a dot at the top level.
    pub fn check_file_names(&self) -> Result<()> {
        if let Some(dotted) = self.fields.iter().find(|field| field.name.contains('.')) {
            return Err(FileError::invalid(format!(
                "expected column names without dots, found '{}'; nest it in a struct instead",
                dotted.name
            )));
        }
        check_siblings(&self.fields)
    }

    /// Refuses further names that a table cannot have: empty ones, with a backtick, or of a system column. Names that the schema `known`
    /// has already are accepted.
    pub fn check_column_names(&self, known: Option<&Schema>) -> Result<()> {
        let known = known.map(|known| known.fields.as_slice()).unwrap_or_default();
        let known: HashSet<&str> = known.iter().map(|field| field.name.as_str()).collect();
        let is_known = |field: &Field| known.contains(field.name.as_str());
        for field in self.fields.iter().filter(|field| !is_known(field)) {
            let name = field.name.as_str();
            let refused = |why: &str| {
                Err(FileError::invalid(format!(
                    "expected a column name that can be read back, found '{name}', {why}; choose another name"
                )))
            };
            if name.is_empty() {
                return refused("which is empty");
            }
            if name.contains('.') {
                return refused("with a dot, which leads into a struct");
            }
            if name.contains('`') {
                return refused("with a backtick, which quotes names");
            }
            if ADDED.contains(&name) {
                return refused("a reserved name, of a column that scans add");
            }
        }
        check_siblings(&self.fields)
    }
}

pub(super) fn check_siblings(fields: &[Field]) -> Result<()> {
    let mut names = BTreeSet::new();
    for field in fields {
        if field.name.contains('\0') {
            return Err(FileError::invalid(format!(
                "expected names without NUL, where Arrow ends them, found {:?}; choose another name",
                field.name
            )));
        }
        if !names.insert(field.name.as_str()) {
            return Err(FileError::invalid(format!(
                "expected different names, found two columns '{}'; choose another name",
                field.name
            )));
        }
        check_siblings(&field.children)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(names: &[&str]) -> Schema {
        let field = |name: &&str| Field {
            name: name.to_string(),
            logical_type: "int64".into(),
            ..Default::default()
        };
        Schema {
            fields: names.iter().map(field).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn test_names_that_a_path_or_a_scan_takes_for_something_else_are_refused() {
        for name in ["", "a.b", "`q`", "_rowid", "_rowoffset", "a\0b"] {
            schema(&[name]).check_column_names(None).unwrap_err();
        }
        for name in ["a b", "ü", "'", "\"", "\n", "\u{2028}", "*", "_ROWID", "_distance"] {
            schema(&[name]).check_column_names(None).unwrap();
        }
        schema(&["a", "A"]).check_column_names(None).unwrap();
        schema(&["a", "a"]).check_column_names(None).unwrap_err();
    }

    #[test]
    fn test_a_column_that_is_there_already_may_stay() {
        let known = schema(&["a.b", "x"]);
        known.check_column_names(Some(&known)).unwrap();
        schema(&["a.b", "_rowid"]).check_column_names(Some(&known)).unwrap_err();
    }

    #[test]
    fn test_files_take_names_that_only_tables_have_no_room_for() {
        schema(&["", "`", "_rowid"]).check_file_names().unwrap();
        for names in [&["a.b"] as &[&str], &["a", "a"], &["\0"]] {
            schema(names).check_file_names().unwrap_err();
        }
    }

    #[test]
    fn test_fields_of_one_struct_have_different_names() {
        let mut parent = schema(&["s"]);
        parent.fields[0].logical_type = "struct".into();
        parent.fields[0].children = schema(&["a.b", "", "_rowid"]).fields;
        parent.check_column_names(None).unwrap();
        parent.fields[0].children = schema(&["a", "a"]).fields;
        parent.check_column_names(None).unwrap_err();
    }
}
