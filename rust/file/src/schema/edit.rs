//! Derives schemas: with columns added, dropped, renamed or replaced.

use std::collections::BTreeSet;

use super::field::{Field, Schema};
use crate::error::{FileError, Result};

/// What is altered of a field.
#[derive(Debug, Clone, Default)]
pub struct Alteration {
    /// The dotted path of the field.
    pub path: String,
    /// Its new name.
    pub name: Option<String>,
    /// Whether it is nullable from now on.
    pub nullable: Option<bool>,
}

impl Schema {
    /// The columns of `other` behind these; struct columns that both have are merged. Ids stay as they are. Where both have metadata of one
    /// name, those of this one stay.
    pub fn extended(&self, other: &Schema) -> Result<Schema> {
        let mut metadata = other.metadata.clone();
        metadata.extend(self.metadata.clone());
        let extended = Schema {
            fields: merged(&self.fields, &other.fields, "")?,
            metadata,
        };
        extended.check_column_names(Some(self))?;
        Ok(extended)
    }

    /// The schema without the fields that dotted paths name, nor the structs that they leave empty.
    pub fn without(&self, paths: &[String]) -> Result<Schema> {
        let mut gone = BTreeSet::new();
        for path in paths {
            gone.insert(self.existing(path)?.id);
        }
        let fields = self.fields.iter().filter_map(|field| without(field, &gone)).collect();
        Ok(Schema {
            fields,
            metadata: self.metadata.clone(),
        })
    }

    /// The schema with fields under other names, nullable or not: all at once, so that names can be exchanged.
    pub fn altered(&self, alterations: &[Alteration]) -> Result<Schema> {
        let mut schema = self.clone();
        for alteration in alterations {
            let id = self.existing(&alteration.path)?.id;
            alter(&mut schema.fields, id, &|field| {
                if let Some(name) = &alteration.name {
                    field.name = name.clone();
                }
                if let Some(nullable) = alteration.nullable {
                    field.nullable = nullable;
                }
            });
        }
        schema.check_column_names(Some(self))?;
        Ok(schema)
    }

    /// The schema with `field` in place of the one at a dotted path.
    pub fn replaced(&self, path: &str, field: &Field) -> Result<Schema> {
        let id = self.existing(path)?.id;
        let mut schema = self.clone();
        alter(&mut schema.fields, id, &|old| *old = field.clone());
        Ok(schema)
    }

    fn existing(&self, path: &str) -> Result<&Field> {
        let missing = || {
            FileError::invalid(format!(
                "expected a column of the table, found '{path}', which it does not have"
            ))
        };
        self.field_by_path(path).ok_or_else(missing)
    }
}

fn without(field: &Field, gone: &BTreeSet<i32>) -> Option<Field> {
    if gone.contains(&field.id) {
        return None;
    }
    let children: Vec<Field> = field.children.iter().filter_map(|child| without(child, gone)).collect();
    if children.is_empty() && !field.children.is_empty() {
        return None;
    }
    Some(Field {
        children,
        ..field.clone()
    })
}

fn alter(fields: &mut [Field], id: i32, change: &dyn Fn(&mut Field)) {
    for field in fields {
        if field.id == id {
            change(field);
        } else {
            alter(&mut field.children, id, change);
        }
    }
}

fn merged(fields: &[Field], new: &[Field], path: &str) -> Result<Vec<Field>> {
    let mut out = fields.to_vec();
    for field in new {
        match out.iter_mut().find(|old| old.name == field.name) {
            None => out.push(field.clone()),
            Some(old) if old.is_struct() && field.is_struct() => {
                let path = format!("{path}{}.", field.name);
                old.children = merged(&old.children, &field.children, &path)?;
            }
            Some(old) => {
                let (name, types) = (format!("{path}{}", field.name), (old.data_type()?, field.data_type()?));
                let conflict = match types.0 == types.1 {
                    true => String::new(),
                    false => format!(
                        "Type conflicts between {name}({:?}) and {name}({:?}): ",
                        types.0, types.1
                    ),
                };
                return Err(FileError::invalid(format!(
                    "{conflict}expected new columns, found '{name}', which the table has already; drop it first"
                )));
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(id: i32, name: &str, children: Vec<Field>) -> Field {
        let logical_type = if children.is_empty() { "int64" } else { "struct" };
        Field {
            id,
            name: name.into(),
            logical_type: logical_type.into(),
            nullable: true,
            children,
            ..Default::default()
        }
    }

    fn schema(fields: Vec<Field>) -> Schema {
        Schema {
            fields,
            ..Default::default()
        }
    }

    fn sample() -> Schema {
        let children = vec![field(2, "x", vec![]), field(3, "y", vec![])];
        schema(vec![field(0, "a", vec![]), field(1, "s", children)])
    }

    fn paths(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|path| path.to_string()).collect()
    }

    #[test]
    fn test_columns_go_and_take_empty_structs_with_them() {
        let ids = |schema: Schema| schema.flat_fields().iter().map(|f| f.id).collect::<Vec<_>>();
        assert_eq!(ids(sample().without(&paths(&["s.x"])).unwrap()), [0, 1, 3]);
        assert_eq!(ids(sample().without(&paths(&["s.x", "s.y"])).unwrap()), [0]);
        assert_eq!(ids(sample().without(&paths(&["s"])).unwrap()), [0]);
        let error = sample().without(&paths(&["z"])).unwrap_err().to_string();
        assert!(error.contains("'z'"), "{error}");
    }

    #[test]
    fn test_columns_come_at_the_end_of_their_parent() {
        let new = schema(vec![field(1, "s", vec![field(9, "z", vec![])]), field(8, "b", vec![])]);
        let extended = sample().extended(&new).unwrap();
        let names: Vec<_> = extended.flat_fields().iter().map(|f| f.name.clone()).collect();
        assert_eq!(names, ["a", "s", "x", "y", "z", "b"]);
        let twice = schema(vec![field(1, "s", vec![field(9, "x", vec![])])]);
        let error = sample().extended(&twice).unwrap_err().to_string();
        assert!(error.contains("'s.x'"), "{error}");
    }

    #[test]
    fn test_names_stay_unique() {
        let to = |path: &str, name: Option<&str>, nullable| Alteration {
            path: path.into(),
            name: name.map(Into::into),
            nullable,
        };
        let renamed = sample().altered(&[to("s.x", Some("w"), Some(false))]).unwrap();
        let found = renamed.field_by_path("s.w").unwrap();
        assert_eq!((found.id, found.nullable), (2, false));
        for (path, name) in [("s.x", "y"), ("a", "s"), ("a", "b.c")] {
            sample().altered(&[to(path, Some(name), None)]).unwrap_err();
        }
        assert_eq!(sample().altered(&[to("a", None, None)]).unwrap(), sample());
        let exchanged = sample()
            .altered(&[to("a", Some("s"), None), to("s", Some("a"), None)])
            .unwrap();
        let ids = ["s", "a", "a.x"].map(|path| exchanged.field_by_path(path).unwrap().id);
        assert_eq!(
            ids,
            ["a", "s", "s.x"].map(|path| sample().field_by_path(path).unwrap().id)
        );
    }

    #[test]
    fn test_a_field_takes_anothers_place() {
        let replaced = sample().replaced("s.x", &field(9, "x", vec![])).unwrap();
        assert_eq!(replaced.field_by_path("s.x").unwrap().id, 9);
    }
}
