//! Selects columns by name.

use super::field::{Field, Schema};
use super::path::parts_of;
use crate::error::{FileError, Result};

impl Schema {
    /// The part of the schema that `names` ask for, columns and dotted paths, in the order in which they are first named. A path leaves
    /// its struct in place, with only the fields asked for.
    pub fn select(&self, names: &[String]) -> Result<Schema> {
        let mut selected: Vec<Selected<'_>> = Vec::new();
        for name in names {
            let path = self.path_of(name).ok_or_else(|| self.unknown(name))?;
            if let [parents @ .., _] = path.as_slice() {
                if let Some(packed) = parents.iter().find(|parent| parent.is_packed_struct()) {
                    return Err(FileError::invalid(format!(
                        "expected the packed struct '{}' as a whole, found '{name}': its fields lie in one column",
                        packed.name
                    )));
                }
            }
            add(&mut selected, &path);
        }
        Ok(Schema {
            fields: selected.iter().map(Selected::field).collect(),
            metadata: self.metadata.clone(),
        })
    }

    /// [`Self::select`], in which the fields of structs have the order that they have here.
    pub fn select_in_order(&self, names: &[String]) -> Result<Schema> {
        let mut selected = self.select(names)?;
        for field in &mut selected.fields {
            if let Some(of) = self.fields.iter().find(|of| of.id == field.id) {
                order_as(field, of);
            }
        }
        Ok(selected)
    }

    /// For each of `names`, which this schema was selected by, the place of its column.
    pub fn places_of(&self, names: &[String]) -> Vec<usize> {
        let place = |name: &str| self.fields.iter().position(|field| field.name == name);
        let found = names.iter().filter_map(|name| {
            let head = || parts_of(name).into_iter().next();
            place(name).or_else(|| place(&head()?))
        });
        found.collect()
    }

    /// The fields from a top-level one down to the one that `name` means.
    fn path_of(&self, name: &str) -> Option<Vec<&Field>> {
        if let Some(field) = self.field(name) {
            return Some(vec![field]);
        }
        let mut parts = parts_of(name).into_iter();
        let mut path = vec![self.field(&parts.next()?)?];
        for part in parts {
            let children = &path.last()?.children;
            path.push(children.iter().find(|child| child.name == part)?);
        }
        Some(path)
    }

    fn unknown(&self, name: &str) -> FileError {
        let known: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
        FileError::invalid(format!(
            "expected a column of the file, found '{name}'; there are: {}",
            known.join(", ")
        ))
    }
}

/// A field, and what of it is asked for.
struct Selected<'a> {
    of: &'a Field,
    whole: bool,
    children: Vec<Selected<'a>>,
}

impl Selected<'_> {
    fn field(&self) -> Field {
        if self.whole {
            return self.of.clone();
        }
        let children = self.children.iter().map(Selected::field).collect();
        Field {
            children,
            ..self.of.clone()
        }
    }
}

fn order_as(field: &mut Field, of: &Field) {
    let place = |child: &Field| of.children.iter().position(|known| known.id == child.id);
    field.children.sort_by_key(place);
    for child in &mut field.children {
        if let Some(known) = place(child).and_then(|place| of.children.get(place)) {
            order_as(child, known);
        }
    }
}

fn add<'a>(selected: &mut Vec<Selected<'a>>, path: &[&'a Field]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    let known = selected.iter().position(|known| known.of.id == first.id);
    let index = known.unwrap_or_else(|| {
        selected.push(Selected {
            of: first,
            whole: false,
            children: Vec::new(),
        });
        selected.len() - 1
    });
    if let Some(entry) = selected.get_mut(index) {
        entry.whole |= rest.is_empty();
        add(&mut entry.children, rest);
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema};

    use super::*;

    fn names(schema: &Schema) -> Vec<String> {
        schema.flat_fields().iter().map(|field| field.name.clone()).collect()
    }

    fn select(names: &[&str]) -> Result<Schema> {
        let inner = Fields::from(vec![
            ArrowField::new("x", DataType::Int8, true),
            ArrowField::new("y", DataType::Int8, true),
        ]);
        let schema = Schema::from_arrow(&ArrowSchema::new(vec![
            ArrowField::new("s", DataType::Struct(inner), true),
            ArrowField::new("a.b", DataType::Int8, true),
        ]))?;
        schema.select(&names.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn test_columns_come_in_the_order_named_and_paths_leave_their_struct() {
        assert_eq!(names(&select(&["a.b", "s.y"]).unwrap()), ["a.b", "s", "y"]);
        assert_eq!(names(&select(&["s.y", "a.b", "s.x"]).unwrap()), ["s", "y", "x", "a.b"]);
        assert_eq!(names(&select(&["s.y", "s"]).unwrap()), ["s", "x", "y"]);
        assert!(select(&[]).unwrap().fields.is_empty());
    }

    #[test]
    fn test_fields_may_keep_their_order_and_paths_find_their_column() {
        let named = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let whole = select(&["s", "a.b"]).unwrap();
        let paths = named(&["s.y", "a.b", "s.x"]);
        let selected = whole.select_in_order(&paths).unwrap();
        assert_eq!(names(&selected), ["s", "x", "y", "a.b"]);
        assert_eq!(selected.places_of(&paths), [0, 1, 0]);
    }

    #[test]
    fn test_an_unknown_column_is_an_error_that_names_those_there_are() {
        let message = select(&["s.z"]).unwrap_err().to_string();
        assert_eq!(message, "expected a column of the file, found 's.z'; there are: s, a.b");
    }
}
