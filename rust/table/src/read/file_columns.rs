//! Where the fields of a table lie in one of its data files.

use crate::fragment::DataFile;

/// The field ids of a data file, and the column of each.
#[derive(Debug)]
pub(super) struct FileColumns {
    fields: Vec<i32>,
    /// The places of the fields by their ids, where the ids do not rise from place to place.
    order: Option<Vec<usize>>,
    columns: Vec<i32>,
    noted_size: Option<u64>,
}

impl FileColumns {
    pub(super) fn of(file: &DataFile) -> Self {
        let fields = file.fields.clone();
        let rises = fields.iter().zip(fields.iter().skip(1)).all(|(id, next)| id < next);
        let order = (!rises).then(|| {
            let mut order: Vec<usize> = (0..fields.len()).collect();
            // Stable: of an id that is listed twice, the first place counts.
            order.sort_by_key(|place| fields.get(*place).copied());
            order
        });
        FileColumns {
            order,
            columns: file.column_indices.clone(),
            noted_size: file.file_size_bytes,
            fields,
        }
    }

    /// The file's size in bytes, where its writer noted it.
    pub(super) fn noted_size(&self) -> Option<u64> {
        self.noted_size
    }

    /// The column of a field.
    pub(super) fn column_of(&self, field_id: i32) -> Option<usize> {
        let place = match &self.order {
            None => self.fields.binary_search(&field_id).ok()?,
            Some(order) => {
                let id = |place: &usize| self.fields.get(*place).copied();
                let first = order.partition_point(|place| id(place) < Some(field_id));
                *order.get(first).filter(|place| id(place) == Some(field_id))?
            }
        };
        if self.columns.is_empty() {
            // A 0.1 file finds its columns by their ids.
            return Some(place);
        }
        usize::try_from(*self.columns.get(place)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn test_a_field_is_where_a_search_from_the_start_finds_it(
            fields in prop::collection::vec(-2_i32..20, 0..20),
            rises in any::<bool>(),
            listed in any::<bool>(),
        ) {
            let mut fields = fields;
            if rises {
                fields.sort_unstable();
                fields.dedup();
            }
            let column_indices: Vec<i32> = (0..fields.len() as i32).map(|column| 40 - column * 3).collect();
            let file = DataFile {
                path: String::new(),
                column_indices: if listed { column_indices.clone() } else { Vec::new() },
                fields: fields.clone(),
                file_major_version: 2,
                file_minor_version: 1,
                file_size_bytes: None,
                base_id: None,
            };
            let columns = FileColumns::of(&file);
            for id in -3..21 {
                let place = fields.iter().position(|field| *field == id);
                let expected = match listed {
                    true => place.and_then(|place| usize::try_from(column_indices[place]).ok()),
                    false => place,
                };
                prop_assert_eq!(columns.column_of(id), expected);
            }
        }
    }
}
