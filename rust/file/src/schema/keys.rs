//! Keys that the metadata of fields declare; nobody enforces them.

use super::field::{Field, Schema};

const PRIMARY_KEY: &str = "lance-schema:unenforced-primary-key";
const PRIMARY_POSITION: &str = "lance-schema:unenforced-primary-key:position";
const CLUSTERING_POSITION: &str = "lance-schema:unenforced-clustering-key:position";

/// What the metadata of a field say of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeclaredKeys {
    /// Whether the field is part of the primary key: a place says so too.
    pub is_primary: bool,
    /// Its place there, from 1; 0 if none is given.
    pub primary_position: u32,
    /// Its place in the clustering key, from 1; 0 where it is not part of it.
    pub clustering_position: u32,
}

impl DeclaredKeys {
    /// What the metadata say; `text` gives the value of a key.
    pub fn of<'a>(text: impl Fn(&str) -> Option<&'a str>) -> DeclaredKeys {
        let place = |key: &str| text(key).and_then(|value| value.parse::<u32>().ok());
        let says_so = |value: &str| matches!(value.to_ascii_lowercase().as_str(), "true" | "1" | "yes");
        let primary = place(PRIMARY_POSITION);
        DeclaredKeys {
            is_primary: primary.is_some() || text(PRIMARY_KEY).is_some_and(says_so),
            primary_position: primary.unwrap_or(0),
            clustering_position: place(CLUSTERING_POSITION).unwrap_or(0),
        }
    }
}

impl Schema {
    /// The fields of the primary key, at any depth: by their places, those without one last, by their ids.
    pub fn primary_key(&self) -> Vec<&Field> {
        fn gather<'a>(fields: &'a [Field], out: &mut Vec<&'a Field>) {
            for field in fields {
                out.extend(field.unenforced_primary_key.then_some(field));
                gather(&field.children, out);
            }
        }
        let mut fields = Vec::new();
        gather(&self.fields, &mut fields);
        fields.sort_by_key(|field| (field.primary_key_position == 0, field.primary_key_position, field.id));
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_a_place_makes_a_field_part_of_a_key() {
        let of = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs.to_vec();
            DeclaredKeys::of(move |key| pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value))
        };
        let keys = |is_primary, primary_position, clustering_position| DeclaredKeys {
            is_primary,
            primary_position,
            clustering_position,
        };
        assert_eq!(of(&[]), keys(false, 0, 0));
        assert_eq!(of(&[(PRIMARY_KEY, "Yes")]), keys(true, 0, 0));
        assert_eq!(of(&[(PRIMARY_KEY, "no")]), keys(false, 0, 0));
        assert_eq!(of(&[(PRIMARY_POSITION, "2")]), keys(true, 2, 0));
        assert_eq!(
            of(&[(PRIMARY_POSITION, "two"), (CLUSTERING_POSITION, "1")]),
            keys(false, 0, 1)
        );
    }

    #[test]
    fn test_the_primary_key_is_in_the_order_of_its_places() {
        let field = |id, is, place| Field {
            id,
            unenforced_primary_key: is,
            primary_key_position: place,
            ..Field::default()
        };
        let schema = Schema {
            fields: vec![
                field(0, true, 0),
                field(1, true, 2),
                field(2, false, 0),
                field(3, true, 1),
            ],
            metadata: Default::default(),
        };
        let ids: Vec<i32> = schema.primary_key().iter().map(|field| field.id).collect();
        assert_eq!(ids, [3, 1, 0]);
    }
}
