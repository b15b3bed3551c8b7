use std::collections::BTreeMap;

use esker_file::schema::{Field, Schema};
use prost::Message;
use uuid::Uuid;

use super::*;
use crate::raw::push_length_delimited;
use crate::transaction::Transaction;

fn fragment(id: u64) -> Fragment {
    let file = pb::DataFile {
        path: "a.lance".into(),
        ..Default::default()
    };
    let mut encoded = Fragment::new(vec![DataFile::from_proto(file)], 5).with_id(id).encode();
    push_length_delimited(&mut encoded, 99, b"future");
    Fragment::decode(&Bytes::from(encoded)).unwrap()
}

fn index() -> Index {
    let message = pb::IndexMetadata {
        name: "i".into(),
        fields: vec![1],
        ..Default::default()
    };
    let mut encoded = message.encode_to_vec();
    push_length_delimited(&mut encoded, 99, b"future");
    Index::decode(&Bytes::from(encoded)).unwrap()
}

fn schema() -> NewSchema {
    let field = Field {
        id: 0,
        name: "a".into(),
        logical_type: "int32".into(),
        ..Default::default()
    };
    NewSchema::from(&Schema {
        fields: vec![field],
        metadata: [("k".to_string(), b"v".to_vec())].into(),
    })
}

fn map(key: &str) -> Option<MapUpdate> {
    Some(MapUpdate {
        entries: [(key.to_string(), Some("v".to_string())), ("gone".to_string(), None)].into(),
        replace: true,
    })
}

/// One of each kind, with everything in it that there can be.
fn samples() -> Vec<Operation> {
    let base = pb::BasePath {
        id: 3,
        path: "b".into(),
        ..Default::default()
    };
    vec![
        Operation::Append {
            fragments: vec![fragment(0), fragment(1)],
        },
        Operation::Delete {
            updated_fragments: vec![fragment(1)],
            deleted_fragment_ids: vec![0, 7],
            predicate: "a = 1".into(),
        },
        Operation::Overwrite {
            fragments: vec![fragment(0)],
            schema: schema(),
            config: [("c".to_string(), "d".to_string())].into(),
            initial_bases: vec![base.clone()],
        },
        Operation::CreateIndex {
            new_indices: vec![index()],
            removed_indices: vec![index()],
        },
        Operation::Rewrite(Rewrite {
            groups: vec![RewriteGroup {
                old_fragments: vec![fragment(1)],
                new_fragments: vec![fragment(9)],
            }],
            rewritten_indices: vec![RewrittenIndex {
                old_id: Uuid::from_u128(1),
                new_id: Uuid::from_u128(2),
                new_details: Some(("/d".into(), Bytes::from_static(b"x"))),
                new_version: 4,
                new_files: vec![Bytes::from_static(b"\x0a\x01f")],
            }],
        }),
        Operation::Merge {
            fragments: vec![fragment(0)],
            schema: schema(),
            preserves_nullability: true,
        },
        Operation::Restore { version: 12 },
        Operation::ReserveFragments { num_fragments: 5 },
        Operation::Update(Update {
            removed_fragment_ids: vec![0],
            updated_fragments: vec![fragment(1)],
            new_fragments: vec![fragment(0)],
            fields_modified: vec![1],
            fields_for_preserving_frag_bitmap: vec![2],
            update_mode: UpdateMode::RewriteColumns,
            mem_wal_to_merge: Bytes::from_static(b"m"),
            inserted_rows: Bytes::from_static(b"f"),
            updated_fragment_offsets: [(0, Bytes::from_static(b"o"))].into(),
        }),
        Operation::Project {
            schema: NewSchema::new(schema().fields().to_vec(), BTreeMap::new()),
            preserves_nullability: true,
        },
        Operation::UpdateConfig(UpdateConfig {
            config: map("a"),
            table_metadata: map("b"),
            schema_metadata: map("c"),
            field_metadata: [(0, map("d").unwrap())].into(),
        }),
        Operation::DataReplacement {
            replacements: vec![(
                4,
                DataFile {
                    path: "f".into(),
                    fields: vec![1],
                    column_indices: vec![0],
                    file_major_version: 2,
                    file_minor_version: 1,
                    file_size_bytes: Some(9),
                    base_id: Some(0),
                },
            )],
        },
        Operation::Clone(op::Clone {
            is_shallow: true,
            ref_name: Some("main".into()),
            ref_version: 3,
            ref_path: "p".into(),
            branch_name: Some("b".into()),
        }),
        Operation::UpdateBases { new_bases: vec![base] },
        Operation::Other {
            kind: OperationKind::UpdateMemWalState,
            message: Bytes::from_static(b"\x0a\x00"),
        },
    ]
}

#[test]
fn test_every_operation_comes_back() {
    let mut kinds = Vec::new();
    for operation in samples() {
        let encoded = Bytes::from(operation.encode().unwrap());
        let again = Operation::decode(operation.kind(), &encoded).unwrap();
        assert_eq!(again, operation);
        assert_eq!(again.encode().unwrap(), encoded, "{:?}", operation.kind());
        let transaction = Transaction::new(7, &operation, BTreeMap::new()).unwrap();
        let transaction = Transaction::decode(&transaction.encode()).unwrap();
        assert_eq!(transaction.operation().unwrap(), operation);
        kinds.push(operation.kind());
    }
    kinds.sort();
    assert_eq!(kinds, OperationKind::NAMED[..15], "100 to 114");
}

#[test]
fn test_what_fields_say_is_what_the_generated_code_reads() {
    for operation in samples() {
        let transaction = Transaction::new(7, &operation, BTreeMap::new()).unwrap();
        let decoded = pb::Transaction::decode(transaction.encode()).unwrap();
        match decoded.operation.unwrap() {
            op::Operation::Delete(delete) => {
                assert_eq!(delete.updated_fragments[0].id, 1);
                assert_eq!(
                    (delete.deleted_fragment_ids, delete.predicate.as_str()),
                    (vec![0, 7], "a = 1")
                );
            }
            op::Operation::Merge(merge) => {
                assert_eq!((merge.schema[0].name.as_str(), merge.fragments.len()), ("a", 1));
                assert_eq!(merge.schema_metadata["k"].as_ref(), b"v");
            }
            op::Operation::Project(project) => {
                assert!(project.preserves_nullability && project.schema[0].name == "a");
            }
            op::Operation::Update(update) => {
                assert_eq!((update.updated_fragments[0].id, update.new_fragments.len()), (1, 1));
                assert_eq!(update.updated_fragment_offsets[&0].as_ref(), b"o");
            }
            op::Operation::Rewrite(rewrite) => assert_eq!(rewrite.groups[0].new_fragments[0].id, 9),
            _ => {}
        }
    }
}

#[test]
fn test_settings_of_old_releases_are_understood() {
    let old = op::UpdateConfig {
        upsert_values: [("a".to_string(), "1".to_string())].into(),
        delete_keys: vec!["b".into()],
        schema_metadata: [("s".to_string(), "2".to_string())].into(),
        field_metadata: [(
            3,
            op::update_config::FieldMetadataUpdate {
                metadata: [("f".to_string(), "3".to_string())].into(),
            },
        )]
        .into(),
        ..Default::default()
    };
    let found = Operation::decode(OperationKind::UpdateConfig, &Bytes::from(old.encode_to_vec())).unwrap();
    let Operation::UpdateConfig(found) = found else {
        panic!("not settings")
    };
    let config = found.config.unwrap();
    assert_eq!(
        config.entries,
        [("a".to_string(), Some("1".to_string())), ("b".to_string(), None)].into()
    );
    assert!(!config.replace && found.schema_metadata.unwrap().replace && found.field_metadata[&3].replace);
}

#[test]
fn test_fragments_of_old_rewrites_make_a_group() {
    let mut encoded = Vec::new();
    push_length_delimited(&mut encoded, 1, &fragment(1).encode());
    push_length_delimited(&mut encoded, 2, &fragment(2).encode());
    let found = Operation::decode(OperationKind::Rewrite, &Bytes::from(encoded)).unwrap();
    let Operation::Rewrite(found) = found else {
        panic!("not a rewrite")
    };
    assert_eq!(found.groups.len(), 1);
    assert_eq!(
        (
            found.groups[0].old_fragments[0].id(),
            found.groups[0].new_fragments[0].id()
        ),
        (1, 2)
    );
}

#[test]
fn test_damaged_operations_never_panic() {
    for operation in samples() {
        let encoded = Transaction::new(7, &operation, BTreeMap::new()).unwrap().encode();
        for position in 0..encoded.len() {
            let _ = Transaction::decode(&encoded.slice(..position)).map(|t| t.operation());
            for bit in 0..8 {
                let mut damaged = encoded.to_vec();
                damaged[position] ^= 1 << bit;
                let _ = Transaction::decode(&Bytes::from(damaged)).map(|t| t.operation());
            }
        }
    }
}
