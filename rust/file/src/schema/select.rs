//! Selects columns by name.

use std::collections::HashMap;

use super::field::{Field, Schema};
use super::path::parts_of;
use crate::error::{FileError, Result};

impl Schema {
    /// The part of the schema that `names` ask for, columns and dotted paths, in the order in which they are first named. A path leaves
    /// its struct in place, with only the fields asked for.
    pub fn select(&self, names: &[String]) -> Result<Schema> {
        let mut selected = Selection::default();
        let mut known: HashMap<&str, &Field> = HashMap::new();
        for field in &self.fields {
            known.entry(field.name.as_str()).or_insert(field);
        }
        for name in names {
            let path = path_of(&known, name).ok_or_else(|| self.unknown(name))?;
            if let [parents @ .., _] = path.as_slice() {
                if let Some(packed) = parents.iter().find(|parent| parent.is_packed_struct()) {
                    return Err(FileError::invalid(format!(
                        "expected the packed struct '{}' as a whole, found '{name}': its fields lie in one column",
                        packed.name
                    )));
                }
            }
            selected.add(&path);
        }
        Ok(Schema {
            fields: selected.fields(),
            metadata: self.metadata.clone(),
        })
    }

    /// [`Self::select`], in which the fields of structs have the order that they have here.
    pub fn select_in_order(&self, names: &[String]) -> Result<Schema> {
        let mut selected = self.select(names)?;
        for field in &mut selected.fields {
            if field.children.is_empty() {
                continue;
            }
            if let Some(of) = self.fields.iter().find(|of| of.id == field.id) {
                order_as(field, of);
            }
        }
        Ok(selected)
    }

    /// For each of `names`, which this schema was selected by, the place of its column.
    pub fn places_of(&self, names: &[String]) -> Vec<usize> {
        let mut known: HashMap<&str, usize> = HashMap::new();
        for (place, field) in self.fields.iter().enumerate() {
            known.entry(field.name.as_str()).or_insert(place);
        }
        let found = names.iter().filter_map(|name| {
            let head = || parts_of(name).into_iter().next();
            let place = known.get(name.as_str()).copied();
            place.or_else(|| known.get(head()?.as_str()).copied())
        });
        found.collect()
    }

    fn unknown(&self, name: &str) -> FileError {
        let known: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
        FileError::invalid(format!(
            "expected a column of the file, found '{name}'; there are: {}",
            known.join(", ")
        ))
    }
}

/// The fields from a top-level one down to the one that `name` means.
fn path_of<'a>(known: &HashMap<&str, &'a Field>, name: &str) -> Option<Vec<&'a Field>> {
    if let Some(field) = known.get(name) {
        return Some(vec![field]);
    }
    let mut parts = parts_of(name).into_iter();
    let mut path = vec![*known.get(parts.next()?.as_str())?];
    for part in parts {
        let children = &path.last()?.children;
        path.push(children.iter().find(|child| child.name == part)?);
    }
    Some(path)
}

/// Fields of which something is asked for, in the order in which they were.
#[derive(Default)]
struct Selection<'a> {
    fields: Vec<Selected<'a>>,
    places: HashMap<i32, usize>,
}

/// A field, and what of it is asked for.
struct Selected<'a> {
    of: &'a Field,
    whole: bool,
    children: Selection<'a>,
}

impl<'a> Selection<'a> {
    fn add(&mut self, path: &[&'a Field]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let place = *self.places.entry(first.id).or_insert_with(|| {
            self.fields.push(Selected {
                of: first,
                whole: false,
                children: Selection::default(),
            });
            self.fields.len() - 1
        });
        if let Some(entry) = self.fields.get_mut(place) {
            entry.whole |= rest.is_empty();
            entry.children.add(rest);
        }
    }

    fn fields(&self) -> Vec<Field> {
        self.fields.iter().map(Selected::field).collect()
    }
}

impl Selected<'_> {
    fn field(&self) -> Field {
        if self.whole {
            return self.of.clone();
        }
        Field {
            children: self.children.fields(),
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
