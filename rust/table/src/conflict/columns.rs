//! Tracks the columns that the field ids in a staged change refer to.
//!
//! Files, indices and metadata name columns by field id, and some writers (pylance) reuse the id of a dropped column, so that an id in a
//! staged change may come to mean another column. So the ids are followed from the read version through each later one: a field is the same
//! as long as it exists with the same type and parent, under any name. A field that was dropped may stay dropped; if its id comes back, it
//! is another field.

use std::collections::BTreeMap;

use esker_proto::lance::table::transaction as op;

use super::overlap::decode;
use crate::manifest::Manifest;
use crate::operation::OperationKind as Kind;
use crate::transaction::Transaction;

/// The fields that a staged change names, as they are in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldColumns(BTreeMap<i32, Option<Column>>);

/// A field's identity, and its path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    parent: i32,
    logical_type: String,
    /// The names from the top-level column down to it.
    path: Vec<String>,
}

impl HeldColumns {
    /// The fields that `ours` names, as they are in `read`, its read version; `None` if it names none, or if the matrix alone decides.
    pub fn new(ours: &Transaction, read: &Manifest) -> Option<Self> {
        let ids = named_ids(ours)?;
        if ids.is_empty() {
            return None;
        }
        let columns = columns(read);
        Some(HeldColumns(
            ids.into_iter().map(|id| (id, columns.get(&id).cloned())).collect(),
        ))
    }

    /// The same in the version that `theirs` made; `None` if an id means another column there.
    pub fn after(&self, theirs: &Transaction, made: &Manifest) -> Option<Self> {
        // All columns are replaced: the old ids are matched by name.
        let anew = matches!(theirs.kind(), Kind::Overwrite | Kind::Restore);
        let columns = columns(made);
        let mut held = BTreeMap::new();
        for (id, before) in &self.0 {
            let after = columns.get(id);
            let same = match (before, after) {
                (Some(before), Some(after)) => {
                    before.parent == after.parent
                        && before.logical_type == after.logical_type
                        && (!anew || before.path == after.path)
                }
                (None, Some(_)) => false,
                (_, None) => true,
            };
            if !same {
                return None;
            }
            held.insert(*id, after.cloned());
        }
        Some(HeldColumns(held))
    }
}

/// The field ids that a change names, for the operations that are compatible with a schema change.
fn named_ids(transaction: &Transaction) -> Option<Vec<i32>> {
    let mut ids: Vec<i32> = match transaction.kind() {
        Kind::Append => {
            let append: op::Append = decode(transaction)?;
            let files = append.fragments.into_iter().flat_map(|fragment| fragment.files);
            files.flat_map(|file| file.fields).collect()
        }
        Kind::Update => {
            let update: op::Update = decode(transaction)?;
            let fragments = update.new_fragments.into_iter().chain(update.updated_fragments);
            let files = fragments.flat_map(|fragment| fragment.files);
            files.flat_map(|file| file.fields).collect()
        }
        Kind::DataReplacement => {
            let replacement: op::DataReplacement = decode(transaction)?;
            let files = replacement.replacements.into_iter().filter_map(|group| group.new_file);
            files.flat_map(|file| file.fields).collect()
        }
        Kind::CreateIndex => {
            let create: op::CreateIndex = decode(transaction)?;
            create.new_indices.into_iter().flat_map(|index| index.fields).collect()
        }
        Kind::UpdateConfig => {
            let update: op::UpdateConfig = decode(transaction)?;
            let replaced = update.field_metadata.into_keys();
            let changed = update.field_metadata_updates.into_keys();
            let numbers = replaced.map(i64::from).chain(changed.map(i64::from));
            numbers.filter_map(|id| i32::try_from(id).ok()).collect()
        }
        _ => return None,
    };
    ids.retain(|id| *id >= 0);
    Some(ids)
}

fn columns(manifest: &Manifest) -> BTreeMap<i32, Column> {
    let mut columns: BTreeMap<i32, Column> = BTreeMap::new();
    // Parents come before their children.
    for field in manifest.schema_fields() {
        let above = columns.get(&field.parent_id).map(|parent| parent.path.as_slice());
        let mut path = above.unwrap_or_default().to_vec();
        path.push(field.name.clone());
        let column = Column {
            parent: field.parent_id,
            logical_type: field.logical_type.clone(),
            path,
        };
        columns.insert(field.id, column);
    }
    columns
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use esker_file::schema::{Field, Schema};

    use super::*;
    use crate::apply::CommitParams;
    use crate::fragment::{DataFile, Fragment};
    use crate::operation::{MapUpdate, NewSchema, Operation, UpdateConfig};

    fn schema(fields: &[(i32, &str, &str)]) -> Schema {
        let field = |(id, name, logical_type): &(i32, &str, &str)| Field {
            id: *id,
            name: name.to_string(),
            logical_type: logical_type.to_string(),
            nullable: true,
            ..Default::default()
        };
        Schema {
            fields: fields.iter().map(field).collect(),
            ..Default::default()
        }
    }

    fn version(fields: &[(i32, &str, &str)]) -> Manifest {
        let params = CommitParams {
            version: 1,
            timestamp_ns: 0,
            data_storage_version: None,
            stable_row_ids: false,
        };
        let create = Transaction::overwrite(0, &[], &schema(fields), BTreeMap::new(), BTreeMap::new());
        create.unwrap().apply(None, &params).unwrap()
    }

    fn append(fields: &[i32]) -> Transaction {
        let file = DataFile {
            path: "f".into(),
            fields: fields.to_vec(),
            column_indices: vec![0; fields.len()],
            file_major_version: 2,
            file_minor_version: 0,
            file_size_bytes: None,
            base_id: None,
        };
        Transaction::append(1, &[Fragment::new(vec![file], 1)], BTreeMap::new()).unwrap()
    }

    fn project() -> Transaction {
        let operation = Operation::Project {
            schema: NewSchema::from(&schema(&[])),
            preserves_nullability: true,
        };
        Transaction::new(1, &operation, BTreeMap::new()).unwrap()
    }

    fn overwrite() -> Transaction {
        Transaction::overwrite(1, &[], &schema(&[]), BTreeMap::new(), BTreeMap::new()).unwrap()
    }

    const READ: [(i32, &str, &str); 2] = [(0, "a", "int64"), (1, "b", "int64")];

    fn held() -> HeldColumns {
        HeldColumns::new(&append(&[0, 1, -2]), &version(&READ)).unwrap()
    }

    #[test]
    fn test_a_renamed_field_is_the_same_and_one_of_another_type_is_not() {
        let renamed = version(&[(0, "a", "int64"), (1, "c", "int64")]);
        assert!(held().after(&project(), &renamed).is_some());
        let retyped = version(&[(0, "a", "int64"), (1, "b", "string")]);
        assert!(held().after(&project(), &retyped).is_none());
    }

    #[test]
    fn test_a_field_that_comes_back_is_another() {
        let gone = held().after(&project(), &version(&READ[..1])).unwrap();
        assert!(gone.after(&project(), &version(&READ[..1])).is_some());
        assert!(gone.after(&project(), &version(&READ)).is_none());
    }

    #[test]
    fn test_a_field_that_was_not_there_when_it_was_read_is_another() {
        let held = HeldColumns::new(&append(&[0, 7]), &version(&READ)).unwrap();
        assert!(held.after(&project(), &version(&READ)).is_some());
        let given = version(&[(0, "a", "int64"), (7, "b", "int64")]);
        assert!(held.after(&project(), &given).is_none());
    }

    #[test]
    fn test_after_an_overwrite_names_count_too() {
        assert!(held().after(&overwrite(), &version(&READ)).is_some());
        let renamed = version(&[(0, "a", "int64"), (1, "c", "int64")]);
        assert!(held().after(&overwrite(), &renamed).is_none());
    }

    #[test]
    fn test_key_values_of_fields_name_columns_and_those_of_the_table_do_not() {
        let change = |field_metadata: BTreeMap<i32, MapUpdate>| {
            let update = UpdateConfig {
                field_metadata,
                ..Default::default()
            };
            Transaction::new(1, &Operation::UpdateConfig(update), BTreeMap::new()).unwrap()
        };
        let read = version(&READ);
        assert_eq!(HeldColumns::new(&change(BTreeMap::new()), &read), None);
        assert!(HeldColumns::new(&change([(1, MapUpdate::default())].into()), &read).is_some());
        assert_eq!(HeldColumns::new(&project(), &read), None);
    }
}
