//! Each operation, applied to a small table with an index.

use esker_proto::lance::table as pb;
use esker_proto::lance::table::transaction as op;
use roaring::RoaringBitmap;
use uuid::Uuid;

use super::*;
use crate::fragment::{DeletionFile, DeletionFileType};
use crate::index::{Index, NewIndex};
use crate::manifest::{noted_field_id, MAX_FIELD_ID};
use crate::operation::{
    MapUpdate, NewSchema, Operation, Rewrite, RewriteGroup, RewrittenIndex, Update, UpdateConfig, UpdateMode,
};

const INDEX: Uuid = Uuid::from_u128(7);

fn commit(base: &Manifest, operation: Operation) -> Result<Manifest> {
    let transaction = Transaction::new(base.version(), &operation, BTreeMap::new())?;
    // Applies the transaction as decoded from its file.
    let transaction = Transaction::decode(&transaction.encode())?;
    assert_eq!(transaction.operation()?, operation);
    transaction
        .apply(Some(base), &params(base.version() + 1))
        .map(|next| written(&next))
}

fn index(name: &str, field: i32, fragments: &[u32]) -> Index {
    Index::new(NewIndex {
        uuid: INDEX,
        name: name.into(),
        fields: vec![field],
        dataset_version: 1,
        fragment_ids: fragments.to_vec(),
        index_version: 1,
        details: Some(("/lance.table.BTreeIndexDetails".into(), b"d".to_vec())),
        ..Default::default()
    })
    .unwrap()
}

/// Fragments 0 to 3 of ten rows with columns 0 and 1 in files of their own, an index on column 0 over the first three.
fn table() -> Manifest {
    let file = |path: &str, field| DataFile {
        path: path.into(),
        ..data_file(&[field])
    };
    let fragments: Vec<Fragment> = (0..4)
        .map(|n| Fragment::new(vec![file(&format!("p{n}"), 0), file(&format!("q{n}"), 1)], 10))
        .collect();
    let config = BTreeMap::from([("kept".to_string(), "1".to_string())]);
    let created = overwrite(&fragments, config).apply(None, &params(1)).unwrap();
    commit(
        &created,
        Operation::CreateIndex {
            new_indices: vec![index("p", 0, &[0, 1, 2])],
            removed_indices: vec![],
        },
    )
    .unwrap()
}

fn covered(manifest: &Manifest) -> Vec<u32> {
    let indices = manifest.indices().unwrap();
    assert_eq!(indices.len(), 1);
    indices[0].fragment_bitmap().unwrap().unwrap().into_iter().collect()
}

fn at(manifest: &Manifest, id: u64) -> Fragment {
    manifest.fragment(id).unwrap().unwrap()
}

fn deletions(count: u64) -> Option<DeletionFile> {
    Some(DeletionFile {
        file_type: DeletionFileType::Arrow,
        read_version: 2,
        id: 99,
        num_deleted_rows: Some(count),
        base_id: None,
    })
}

fn paths(fragment: &Fragment) -> Vec<&str> {
    fragment.files().iter().map(|file| file.path.as_str()).collect()
}

fn refused(base: &Manifest, operation: Operation, expected: &str) {
    let error = commit(base, operation).unwrap_err().to_string();
    assert!(error.contains(expected), "expected '{expected}', found '{error}'");
}

#[test]
fn test_a_delete_masks_rows_and_drops_empty_fragments() {
    let base = table();
    let delete = |updated: Fragment, deleted| Operation::Delete {
        updated_fragments: vec![updated],
        deleted_fragment_ids: deleted,
        predicate: "p = 1".into(),
    };
    // The writer read the fragment with another data file: only its deletion file is taken.
    let stale = at(&base, 1).with_file(data_file(&[5])).with_deletion_file(deletions(3));
    let next = commit(&base, delete(stale, vec![3])).unwrap();
    assert_eq!((ids(&next), next.num_rows().unwrap()), (vec![0, 1, 2], Some(27)));
    assert_eq!(at(&next, 1).deletion_file(), deletions(3).as_ref());
    assert_eq!(paths(&at(&next, 1)), ["p1", "q1"]);
    assert_eq!(
        (next.reader_feature_flags() & 1, next.writer_feature_flags() & 1),
        (1, 1)
    );
    assert_eq!(
        (covered(&next), next.max_fragment_id().unwrap()),
        (vec![0, 1, 2], Some(3))
    );
    refused(&next, delete(at(&next, 0), vec![3]), "found fragment 3");
    let twice = Operation::Delete {
        updated_fragments: vec![at(&base, 0), at(&base, 0)],
        deleted_fragment_ids: vec![],
        predicate: String::new(),
    };
    refused(&base, twice, "found fragment 0 twice");
}

#[test]
fn test_an_update_moves_rows() {
    let base = table();
    let moved = Update {
        removed_fragment_ids: vec![0],
        updated_fragments: vec![at(&base, 1).with_deletion_file(deletions(4))],
        new_fragments: vec![fragment(14)],
        fields_for_preserving_frag_bitmap: vec![0],
        ..Default::default()
    };
    let next = commit(&base, Operation::Update(moved)).unwrap();
    assert_eq!((ids(&next), next.num_rows().unwrap()), (vec![1, 2, 3, 4], Some(40)));
    // A removed fragment may stay in the bitmap, as its id is never given out again.
    assert_eq!(covered(&next), [0, 1, 2]);
}

#[test]
fn test_an_update_of_columns_takes_fragments_from_their_indices() {
    let base = table();
    let rewritten = |field: i32| {
        let file = DataFile {
            path: "new".into(),
            ..data_file(&[field])
        };
        let old = usize::try_from(field).unwrap();
        let tombstone = DataFile {
            fields: vec![-2],
            ..at(&base, 1).files()[old].clone()
        };
        let update = Update {
            updated_fragments: vec![at(&base, 1).with_file_at(old, tombstone).with_file(file)],
            fields_modified: vec![field.try_into().unwrap()],
            update_mode: UpdateMode::RewriteColumns,
            updated_fragment_offsets: [(1, Bytes::from_static(b"rows"))].into(),
            ..Default::default()
        };
        commit(&base, Operation::Update(update)).unwrap()
    };
    let (indexed, other) = (rewritten(0), rewritten(1));
    assert_eq!((covered(&indexed), covered(&other)), (vec![0, 2], vec![0, 1, 2]));
    // A file whose columns were all taken over by others is dropped.
    assert_eq!(paths(&at(&indexed, 1)), ["q1", "new"]);
    assert_eq!(paths(&at(&other, 1)), ["p1", "new"]);
    let log = Update {
        mem_wal_to_merge: Bytes::from_static(b"log"),
        ..Default::default()
    };
    refused(&base, Operation::Update(log), "write-ahead log");
}

fn group(base: &Manifest, old: &[u64], new: Vec<Fragment>) -> RewriteGroup {
    RewriteGroup {
        old_fragments: old.iter().map(|id| at(base, *id)).collect(),
        new_fragments: new,
    }
}

#[test]
fn test_a_rewrite_takes_old_fragments_from_indices_that_were_not_rewritten() {
    let base = table();
    let rewrite = Rewrite {
        groups: vec![group(&base, &[1, 2], vec![fragment(20)])],
        rewritten_indices: vec![],
    };
    let next = commit(&base, Operation::Rewrite(rewrite)).unwrap();
    assert_eq!((ids(&next), next.num_rows().unwrap()), (vec![0, 3, 4], Some(40)));
    assert_eq!(covered(&next), [0]);
    assert_eq!(next.max_fragment_id().unwrap(), Some(4));
}

#[test]
fn test_a_rewritten_index_covers_the_new_fragments() {
    let base = commit(&table(), Operation::ReserveFragments { num_fragments: 2 }).unwrap();
    assert_eq!(base.max_fragment_id().unwrap(), Some(5));
    let change = |details| RewrittenIndex {
        old_id: INDEX,
        new_id: Uuid::from_u128(8),
        new_details: details,
        new_version: 3,
        new_files: vec![Bytes::from_static(b"\x0a\x01f")],
    };
    let rewrite = |groups, details| {
        Operation::Rewrite(Rewrite {
            groups,
            rewritten_indices: vec![change(details)],
        })
    };
    let groups = vec![
        group(&base, &[0, 1], vec![fragment(20).with_id(5)]),
        group(&base, &[3], vec![fragment(10).with_id(4)]),
    ];
    let details = Some(("/new".to_string(), Bytes::from_static(b"n")));
    let next = commit(&base, rewrite(groups, details)).unwrap();
    assert_eq!((ids(&next), next.max_fragment_id().unwrap()), (vec![2, 4, 5], Some(5)));
    assert_eq!(covered(&next), [2, 5]);
    let index = &next.indices().unwrap()[0];
    assert_eq!((index.uuid(), index.name()), (Some(Uuid::from_u128(8)), "p"));
    let metadata = index.metadata();
    assert_eq!(metadata.index_details.as_ref().unwrap().type_url, "/new");
    assert_eq!(metadata.index_version, Some(3));
    assert!(index.encode().ends_with(b"\x0a\x01f"));
    let partly = vec![group(&base, &[2, 3], vec![fragment(20)])];
    refused(&base, rewrite(partly, None), "rewrite them apart");
    let unknown = RewrittenIndex {
        old_id: Uuid::from_u128(9),
        ..change(None)
    };
    let operation = Operation::Rewrite(Rewrite {
        groups: vec![],
        rewritten_indices: vec![unknown],
    });
    refused(&base, operation, "which it does not have");
}

#[test]
fn test_a_rewrite_uses_reserved_ids_only() {
    let base = table();
    for taken in [2, 4, u64::from(u32::MAX) + 1] {
        let rewrite = Rewrite {
            groups: vec![group(&base, &[1], vec![fragment(10).with_id(taken)])],
            rewritten_indices: vec![],
        };
        refused(&base, Operation::Rewrite(rewrite), "reserved ids");
    }
    let twice = Rewrite {
        groups: vec![group(&base, &[1], vec![fragment(10)]), group(&base, &[1], vec![])],
        rewritten_indices: vec![],
    };
    refused(&base, Operation::Rewrite(twice), "found fragment 1 twice");
}

#[test]
fn test_a_merge_brings_columns() {
    let base = table();
    let mut wider = schema();
    wider.fields.push(Field {
        id: 2,
        name: "r".into(),
        logical_type: "int64".into(),
        nullable: true,
        ..Default::default()
    });
    wider.fields.remove(0);
    let merge = |fragments| Operation::Merge {
        fragments,
        schema: NewSchema::from(&wider),
        preserves_nullability: true,
    };
    let all: Vec<Fragment> = base
        .fragments()
        .map(|fragment| fragment.unwrap().with_file(data_file(&[2])))
        .collect();
    let next = commit(&base, merge(all.clone())).unwrap();
    assert_eq!(*next.schema().unwrap(), wider);
    // The file of the column that was dropped is named no more.
    assert_eq!(paths(&at(&next, 3)), ["q3", "new.lance"]);
    // The indexed column was dropped.
    assert!(!next.has_indices());
    refused(&base, merge(all[1..].to_vec()), "found none of id 0");
    let mut fewer = all;
    fewer[2] = fragment(9).with_id(2);
    refused(
        &base,
        merge(fewer),
        "expected fragment 2 with 10 rows as before, found 9",
    );
}

#[test]
fn test_what_a_newer_writer_noted_on_columns_survives() {
    let mut base = table();
    let noted: Vec<Vec<u8>> = base
        .raw
        .all(field::SCHEMA)
        .map(|field| {
            let mut encoded = field.payload().to_vec();
            push_length_delimited(&mut encoded, 113, b"key");
            encoded
        })
        .collect();
    base.raw.set_all_bytes(field::SCHEMA, noted.iter().map(Vec::as_slice));
    let mut renamed = schema();
    renamed.fields[1].name = "renamed".into();
    renamed.fields[0].id = 5;
    renamed.metadata.clear();
    let project = Operation::Project {
        schema: NewSchema::from(&renamed),
        preserves_nullability: true,
    };
    let next = commit(&base, project).unwrap();
    let kept: Vec<bool> = next
        .raw
        .all(field::SCHEMA)
        .map(|field| field.payload().ends_with(b"key"))
        .collect();
    assert_eq!(kept, [false, true], "a new column inherits nothing");
    assert_eq!(next.schema().unwrap().fields, renamed.fields);
}

#[test]
fn test_a_detached_version_stands_beside_the_history() {
    let base = table();
    let transaction = Transaction::append(base.version(), &[fragment(3)], BTreeMap::new()).unwrap();
    let version = (1 << 63) | 77;
    let detached = written(&transaction.apply(Some(&base), &params(version)).unwrap());
    assert_eq!((detached.version(), detached.num_rows().unwrap()), (version, Some(43)));
    transaction
        .apply(Some(&base), &params(version & !(1 << 63)))
        .unwrap_err();
}

#[test]
fn test_new_columns_do_not_take_the_ids_of_files_columns() {
    let base = table();
    assert_eq!(base.max_field_id().unwrap(), 1);
    let update = Update {
        updated_fragments: vec![at(&base, 1).with_file(data_file(&[41]))],
        ..Default::default()
    };
    let next = commit(&base, Operation::Update(update)).unwrap();
    assert_eq!(
        (next.max_field_id().unwrap(), next.schema().unwrap().max_field_id()),
        (41, 1)
    );
}

/// The table with only its first column.
fn without_the_second(base: &Manifest) -> Manifest {
    let mut narrow = schema();
    narrow.fields.remove(1);
    // The transaction does not carry them.
    narrow.metadata.clear();
    let project = Operation::Project {
        schema: NewSchema::from(&narrow),
        preserves_nullability: true,
    };
    commit(base, project).unwrap()
}

#[test]
fn test_an_id_that_shows_no_more_is_noted() {
    let next = without_the_second(&table());
    assert_eq!(next.schema().unwrap().max_field_id(), 0);
    assert_eq!(next.config().get(MAX_FIELD_ID).map(String::as_str), Some("1"));
    // It stays whatever else is set.
    let replaced = Operation::UpdateConfig(UpdateConfig {
        config: Some(MapUpdate {
            replace: true,
            ..Default::default()
        }),
        ..Default::default()
    });
    assert_eq!(commit(&next, replaced).unwrap().max_field_id().unwrap(), 1);
}

#[test]
fn test_a_schema_that_was_numbered_anew_is_refused() {
    let merge = |base: &Manifest, fields: &[(i32, &str, &str)]| {
        let mut schema = schema();
        let one = schema.fields.remove(0);
        schema.fields = fields
            .iter()
            .map(|(id, name, logical_type)| esker_file::schema::Field {
                id: *id,
                name: name.to_string(),
                logical_type: logical_type.to_string(),
                ..one.clone()
            })
            .collect();
        let operation = Operation::Merge {
            fragments: base.fragments().collect::<Result<_>>().unwrap(),
            schema: NewSchema::from(&schema),
            preserves_nullability: true,
        };
        commit(base, operation)
    };
    let base = table();
    let (p, q) = ((0, "p", "int64"), (1, "q", "int64"));
    for sound in [
        &[p, q] as &[_],
        &[p, q, (2, "r", "string")],
        &[(0, "s", "int64"), q],
        &[p, (7, "q", "string")],
        &[(0, "q", "int64")],
    ] {
        merge(&base, sound).unwrap();
    }
    for renumbered in [
        &[(0, "p", "string"), q] as &[_],
        &[(0, "q", "int64"), (9, "p", "int64")],
    ] {
        merge(&base, renumbered).unwrap_err();
    }
    // The second one's id is still in the file that holds both.
    let both = overwrite(&[fragment(10)], BTreeMap::new())
        .apply(None, &params(1))
        .unwrap();
    let narrow = without_the_second(&written(&both));
    merge(&narrow, &[p, (2, "r", "int64")]).unwrap();
    merge(&narrow, &[p, (1, "r", "int64")]).unwrap_err();
}

#[test]
fn test_a_note_that_is_no_id_is_no_note() {
    for note in ["", "x", "-3", "4294967296"] {
        let config = [(MAX_FIELD_ID.to_string(), note.to_string())];
        assert_eq!(noted_field_id(&config.into()), None);
    }
}

#[test]
fn test_a_projection_drops_columns_and_their_files() {
    let base = table();
    let mut narrow = schema();
    narrow.fields.remove(1);
    narrow.fields[0].name = "renamed".into();
    narrow.metadata.clear();
    let project = Operation::Project {
        schema: NewSchema::from(&narrow),
        preserves_nullability: false,
    };
    let next = commit(&base, project).unwrap();
    assert_eq!(paths(&at(&next, 0)), ["p0"]);
    assert_eq!(next.schema().unwrap().fields, narrow.fields);
    // The transaction does not carry them.
    assert_eq!(next.schema().unwrap().metadata, schema().metadata);
    assert_eq!(covered(&next), [0, 1, 2]);
}

#[test]
fn test_data_are_replaced_file_by_file() {
    let base = table();
    let file = |fields: &[i32]| DataFile {
        path: "new".into(),
        file_size_bytes: Some(7),
        ..data_file(fields)
    };
    let replace = |id, file| Operation::DataReplacement {
        replacements: vec![(id, file)],
    };
    let next = commit(&base, replace(1, file(&[0]))).unwrap();
    assert_eq!(paths(&at(&next, 1)), ["new", "q1"]);
    assert_eq!((ids(&next), covered(&next)), (vec![0, 1, 2, 3], vec![0, 2]));
    let next = commit(&base, replace(1, file(&[1]))).unwrap();
    assert_eq!(
        (paths(&at(&next, 1)), covered(&next)),
        (vec!["p1", "new"], vec![0, 1, 2])
    );
    refused(&base, replace(1, file(&[2])), "expected fields of the table's schema");
    // One in place of two, and one in place of a part of it.
    let next = commit(&base, replace(1, file(&[0, 1]))).unwrap();
    assert_eq!(paths(&at(&next, 1)), ["new"]);
    let newer = DataFile {
        path: "newer".into(),
        ..data_file(&[1])
    };
    let next = commit(&next, replace(1, newer)).unwrap();
    assert_eq!(paths(&at(&next, 1)), ["new", "newer"]);
    assert_eq!(at(&next, 1).files()[0].fields, [0, -2]);
    assert_eq!(covered(&next), vec![0, 2]);
    refused(&base, replace(9, file(&[0])), "found fragment 9");
}

#[test]
fn test_an_index_replaces_those_of_its_name() {
    let base = table();
    let create = |new, removed| {
        let operation = Operation::CreateIndex {
            new_indices: new,
            removed_indices: removed,
        };
        commit(&base, operation).unwrap().indices().unwrap()
    };
    let names = |indices: Vec<Index>| indices.iter().map(|index| index.name().to_string()).collect::<Vec<_>>();
    assert_eq!(create(vec![index("p", 0, &[0])], vec![]), [index("p", 0, &[0])]);
    assert_eq!(names(create(vec![index("q", 1, &[0])], vec![])), ["p", "q"]);
    assert!(create(vec![], vec![index("p", 0, &[])]).is_empty());
}

#[test]
fn test_settings_change_key_by_key() {
    let base = table();
    let change = |key: &str, value: Option<&str>, replace| {
        Some(MapUpdate {
            entries: [(key.to_string(), value.map(str::to_string))].into(),
            replace,
        })
    };
    let update = UpdateConfig {
        config: change("new", Some("2"), false),
        table_metadata: change("about", Some("it"), false),
        schema_metadata: change("s", Some("t"), true),
        field_metadata: [(1, change("f", Some("g"), false).unwrap())].into(),
    };
    let next = commit(&base, Operation::UpdateConfig(update)).unwrap();
    let text = |map: &BTreeMap<String, String>| map.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>();
    assert_eq!(text(next.config()), ["kept=1", "new=2"]);
    assert_eq!(text(next.table_metadata()), ["about=it"]);
    let schema = next.schema().unwrap();
    assert_eq!(schema.metadata, [("s".to_string(), b"t".to_vec())].into());
    assert_eq!(schema.fields[1].metadata["f"], b"g");
    assert!(schema.fields[0].metadata.is_empty());
    let nothing = UpdateConfig {
        config: change("kept", None, true),
        ..Default::default()
    };
    let next = commit(&next, Operation::UpdateConfig(nothing)).unwrap();
    assert!(next.config().is_empty() && next.writer_feature_flags() & flags::TABLE_CONFIG == 0);
    let unknown = UpdateConfig {
        field_metadata: [(9, MapUpdate::default())].into(),
        ..Default::default()
    };
    refused(&base, Operation::UpdateConfig(unknown), "found 9");
}

#[test]
fn test_bases_are_numbered_from_one() {
    let base = |path: &str| pb::BasePath {
        path: path.into(),
        is_dataset_root: true,
        ..Default::default()
    };
    let update = |paths: &[&str]| Operation::UpdateBases {
        new_bases: paths.iter().map(|path| base(path)).collect(),
    };
    let next = commit(&table(), update(&["a", "b"])).unwrap();
    let ids: Vec<u32> = next.base_paths().iter().map(|base| base.id).collect();
    assert_eq!(ids, [1, 2]);
    assert_eq!(
        (next.reader_feature_flags() & 16, next.writer_feature_flags() & 16),
        (16, 16)
    );
    refused(&table(), update(&["a", "a"]), "has already");
}

#[test]
fn test_a_clone_borrows_what_lies_in_the_sources_root() {
    let source = table();
    let clone = |is_shallow| {
        Operation::Clone(op::Clone {
            is_shallow,
            ref_version: source.version(),
            ref_path: "/source".into(),
            ..Default::default()
        })
    };
    let params = CommitParams {
        version: source.version(),
        ..params(0)
    };
    let commit = |operation: &Operation, source: &Manifest| {
        let transaction = Transaction::new(source.version(), operation, BTreeMap::new()).unwrap();
        transaction.apply_clone(source, &params)
    };
    let shallow = commit(&clone(true), &source).unwrap();
    assert_eq!(shallow.version(), source.version());
    assert_eq!(shallow.reader_feature_flags() & 16, 16);
    let bases: Vec<_> = shallow.base_paths().iter().map(|base| (base.id, &base.path)).collect();
    assert_eq!(bases, [(0, &"/source".to_string())]);
    for fragment in shallow.fragments() {
        assert!(fragment.unwrap().files().iter().all(|file| file.base_id == Some(0)));
    }
    // A clone of a clone adds the first clone's root as a base path and keeps the base path of the original table.
    let again = commit(&clone(true), &shallow).unwrap();
    let ids: Vec<u32> = again.base_paths().iter().map(|base| base.id).collect();
    assert_eq!(ids, [0, 1]);
    assert!(again
        .fragments()
        .all(|fragment| fragment.unwrap().files()[0].base_id == Some(0)));
    let deep = commit(&clone(false), &shallow).unwrap();
    assert!(deep.base_paths().is_empty());
    assert_eq!(deep.reader_feature_flags() & 16, 0);
    assert!(deep
        .fragments()
        .all(|fragment| fragment.unwrap().files()[0].base_id.is_none()));
    let other = Operation::Clone(op::Clone {
        ref_version: source.version() + 1,
        ..Default::default()
    });
    assert!(commit(&other, &source)
        .unwrap_err()
        .to_string()
        .contains("to clone, found"));
}

#[test]
fn test_a_restore_forgets_neither_ids_nor_what_applications_committed() {
    let old = table();
    let properties = BTreeMap::from([
        (crate::transaction::APPLICATION_ID.to_string(), "app".to_string()),
        (crate::transaction::APPLICATION_VERSION.to_string(), "5".to_string()),
    ]);
    let appended = Transaction::append(2, &[fragment(1)], properties).unwrap();
    let appended = written(&appended.apply(Some(&old), &params(3)).unwrap());
    assert_eq!(appended.config()["esker.application.app"], "5");
    let dropped = UpdateConfig {
        config: Some(MapUpdate {
            entries: [("kept".to_string(), None)].into(),
            replace: false,
        }),
        ..Default::default()
    };
    let base = commit(&appended, Operation::UpdateConfig(dropped)).unwrap();
    let restore = Transaction::new(4, &Operation::Restore { version: 2 }, BTreeMap::new()).unwrap();
    let next = written(&restore.apply_restore(&base, &old, &params(5)).unwrap());
    assert_eq!(
        (next.version(), ids(&next), covered(&next)),
        (5, vec![0, 1, 2, 3], vec![0, 1, 2])
    );
    assert_eq!(next.max_fragment_id().unwrap(), Some(4));
    assert_eq!(
        next.config()
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect::<Vec<_>>(),
        ["esker.application.app=5", "kept=1"]
    );
    let error = restore.apply(Some(&base), &params(5)).unwrap_err().to_string();
    assert!(error.contains("expected the manifest of version 2"), "{error}");
    let error = restore.apply_restore(&base, &appended, &params(5)).unwrap_err();
    assert!(error.to_string().contains("found that of version 3"), "{error}");
}

#[test]
fn test_half_an_application_record_is_refused() {
    let base = table();
    for (key, value) in [
        (crate::transaction::APPLICATION_ID, "app"),
        (crate::transaction::APPLICATION_VERSION, "5"),
    ] {
        let properties = BTreeMap::from([(key.to_string(), value.to_string())]);
        let append = Transaction::append(2, &[fragment(1)], properties).unwrap();
        append.apply(Some(&base), &params(3)).unwrap_err();
    }
}

#[test]
fn test_what_a_newer_writer_noted_on_indices_survives() {
    let base = table();
    let mut encoded = index("p", 0, &[0, 1, 2]).encode();
    push_length_delimited(&mut encoded, 77, b"future");
    let newer = Index::decode(&Bytes::from(encoded.clone())).unwrap();
    let create = Operation::CreateIndex {
        new_indices: vec![newer],
        removed_indices: vec![],
    };
    let base = commit(&base, create).unwrap();
    assert_eq!(base.indices().unwrap()[0].encode(), encoded);
    let replace = Operation::DataReplacement {
        replacements: vec![(1, data_file(&[0]))],
    };
    let next = commit(&base, replace).unwrap();
    assert!(next.indices().unwrap()[0].encode().ends_with(b"future"));
    assert_eq!(covered(&next), [0, 2]);
}

#[test]
fn test_an_index_without_a_bitmap_stays_as_it_is() {
    let message = pb::IndexMetadata {
        name: "old".into(),
        fields: vec![0],
        ..Default::default()
    };
    let old = Index::decode(&Bytes::from(message.encode_to_vec())).unwrap();
    assert_eq!(old.fragment_bitmap().unwrap(), None::<RoaringBitmap>);
    let create = Operation::CreateIndex {
        new_indices: vec![old.clone()],
        removed_indices: vec![index("p", 0, &[])],
    };
    let base = commit(&table(), create).unwrap();
    let replace = Operation::DataReplacement {
        replacements: vec![(1, data_file(&[0]))],
    };
    assert_eq!(commit(&base, replace).unwrap().indices().unwrap(), [old]);
}
