use std::collections::BTreeMap;

use bytes::Bytes;
use esker_file::schema::{Field, Schema};
use prost::Message;

use super::draft::{is_older_than, timestamp};
use super::*;
use crate::flags;
use crate::fragment::{DataFile, Fragment};
use crate::fragment_list::FragmentList;
use crate::manifest::field;
use crate::operation::OperationKind;
use crate::raw::push_length_delimited;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/compat/golden/manifests");

fn golden(name: &str) -> Manifest {
    let path = format!("{GOLDEN}/{name}.manifest");
    Manifest::decode(&std::fs::read(&path).unwrap().into(), &path).unwrap()
}

fn data_file(fields: &[i32]) -> DataFile {
    DataFile {
        path: "new.lance".into(),
        fields: fields.to_vec(),
        column_indices: (0..).take(fields.len()).collect(),
        file_major_version: 2,
        file_minor_version: 0,
        file_size_bytes: Some(100),
        base_id: None,
    }
}

fn fragment(rows: u64) -> Fragment {
    Fragment::new(vec![data_file(&[0, 1])], rows)
}

fn schema() -> Schema {
    let field = |id, name: &str| Field {
        id,
        name: name.into(),
        logical_type: "int64".into(),
        nullable: true,
        ..Default::default()
    };
    Schema {
        fields: vec![field(0, "p"), field(1, "q")],
        metadata: [("m".to_string(), b"n".to_vec())].into(),
    }
}

fn params(version: u64) -> CommitParams {
    CommitParams {
        version,
        timestamp_ns: 1_700_000_000_123_456_789,
        data_storage_version: None,
        stable_row_ids: false,
    }
}

fn append(fragments: &[Fragment]) -> Transaction {
    Transaction::append(1, fragments, BTreeMap::new()).unwrap()
}

fn overwrite(fragments: &[Fragment], config: BTreeMap<String, String>) -> Transaction {
    Transaction::overwrite(0, fragments, &schema(), config, BTreeMap::new()).unwrap()
}

/// The manifest as its file holds it.
fn written(manifest: &Manifest) -> Manifest {
    Manifest::decode(&manifest.encode().unwrap(), "written").unwrap()
}

fn ids(manifest: &Manifest) -> Vec<u64> {
    manifest.fragments().map(|fragment| fragment.unwrap().id()).collect()
}

#[test]
fn test_a_new_table_starts_at_version_one() {
    let transaction = overwrite(&[fragment(3), fragment(4)], BTreeMap::new());
    let manifest = written(&transaction.apply(None, &params(1)).unwrap());
    assert_eq!(
        (manifest.version(), ids(&manifest), manifest.num_rows().unwrap()),
        (1, vec![0, 1], Some(7))
    );
    assert_eq!(
        (manifest.reader_feature_flags(), manifest.writer_feature_flags()),
        (0, 0)
    );
    assert_eq!(manifest.max_fragment_id().unwrap(), Some(1));
    assert_eq!(manifest.data_storage_version().unwrap(), FileVersion::V2_0);
    assert_eq!(manifest.timestamp_ns(), 1_700_000_000_123_456_789);
    assert_eq!(manifest.transaction_file(), Some(transaction.file_name().as_str()));
    assert_eq!(manifest.writer_version(), Some(("esker", env!("CARGO_PKG_VERSION"))));
    assert_eq!(*manifest.schema().unwrap(), schema());
    let numbers: Vec<u32> = manifest.raw.fields().iter().map(|field| field.number()).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
}

#[test]
fn test_a_new_table_without_rows_has_given_out_no_id() {
    let manifest = written(&overwrite(&[], BTreeMap::new()).apply(None, &params(1)).unwrap());
    assert_eq!(
        (manifest.num_fragments(), manifest.max_fragment_id().unwrap()),
        (0, None)
    );
}

#[test]
fn test_an_append_carries_all_else_byte_for_byte() {
    let base = golden("index_config_metadata_deletions");
    let next = written(&append(&[fragment(5)]).apply(Some(&base), &params(7)).unwrap());
    assert_eq!(
        (next.version(), ids(&next), next.num_rows().unwrap()),
        (7, vec![0, 1, 2], Some(9))
    );
    assert_eq!(next.index_section, base.index_section);
    assert_eq!((next.reader_feature_flags(), next.writer_feature_flags()), (1, 9));
    for number in [
        field::SCHEMA,
        field::SCHEMA_METADATA,
        field::CONFIG,
        field::DATA_FORMAT,
        19,
    ] {
        let records = |manifest: &Manifest| manifest.raw.all(number).map(|f| f.record().clone()).collect::<Vec<_>>();
        assert_eq!(records(&next), records(&base), "field {number}");
        assert!(!records(&next).is_empty(), "field {number}");
    }
    let inline = next.inline_transaction().unwrap().unwrap();
    assert_eq!((inline.kind(), inline.read_version()), (OperationKind::Append, 1));
    assert!(next
        .fragments
        .records()
        .concat()
        .starts_with(&base.fragments.records().concat()));
}

#[test]
fn test_fields_of_newer_writers_are_carried() {
    let mut base = golden("created_2_0");
    base.raw.append_bytes(99, b"from the future");
    base.raw.set_varint(40, 7);
    let nested = base.fragments.get(0).unwrap().unwrap();
    let mut message = nested.encode();
    push_length_delimited(&mut message, 12, b"lineage");
    base.fragments = FragmentList::default();
    base.fragments.push_all([message.as_slice()]).unwrap();
    let base = written(&Manifest::from_parts(base.raw, base.fragments, "").unwrap());
    for transaction in [append(&[fragment(1)]), overwrite(&[fragment(1)], BTreeMap::new())] {
        let next = written(&transaction.apply(Some(&base), &params(2)).unwrap());
        assert_eq!(next.raw.get(99).unwrap().payload().as_ref(), b"from the future");
        assert_eq!(next.raw.get(40).unwrap().varint(), 7);
    }
    let next = written(&append(&[fragment(1)]).apply(Some(&base), &params(2)).unwrap());
    assert_eq!(next.fragment(0).unwrap().unwrap().encode(), message);
}

#[test]
fn test_what_belongs_to_one_version_is_not_carried() {
    let mut base = golden("created_2_0");
    base.raw.set_bytes(field::TAG, b"tag");
    base.raw.set_varint(field::VERSION_AUX_DATA, 9);
    base.raw.set_varint(
        field::WRITER_FLAGS,
        flags::V2_FORMAT_DEPRECATED | flags::TRANSACTION_FILE_DISABLED,
    );
    let base = Manifest::from_parts(base.raw, base.fragments, "").unwrap();
    let next = append(&[fragment(1)]).apply(Some(&base), &params(2)).unwrap();
    assert!(next.raw.get(field::TAG).is_none() && next.raw.get(field::VERSION_AUX_DATA).is_none());
    assert_eq!(next.writer_feature_flags(), 0);
}

#[test]
fn test_an_overwrite_replaces_contents_and_keeps_settings() {
    let base = golden("index_config_metadata_deletions");
    let config = BTreeMap::from([("new".to_string(), "1".to_string())]);
    let next = written(
        &overwrite(&[fragment(5)], config)
            .apply(Some(&base), &params(7))
            .unwrap(),
    );
    assert_eq!((ids(&next), next.max_fragment_id().unwrap()), (vec![2], Some(2)));
    assert_eq!(*next.schema().unwrap(), schema());
    assert!(!next.has_indices() && next.raw.get(field::INDEX_SECTION).is_none());
    assert_eq!((next.reader_feature_flags(), next.writer_feature_flags()), (0, 8));
    assert_eq!(
        next.config()
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect::<Vec<_>>(),
        ["new=1", "owner=golden"]
    );
    assert_eq!(next.table_metadata()["about"], "golden");
}

#[test]
fn test_ids_are_not_given_out_twice() {
    let empty = overwrite(&[], BTreeMap::new())
        .apply(Some(&golden("overwritten")), &params(8))
        .unwrap();
    assert_eq!((empty.num_fragments(), empty.max_fragment_id().unwrap()), (0, Some(2)));
    let next = append(&[fragment(1)]).apply(Some(&empty), &params(9)).unwrap();
    assert_eq!(ids(&next), [3]);
    let mut raw = golden("created_2_0").raw;
    raw.set_optional_varint(field::MAX_FRAGMENT_ID, Some(u64::from(u32::MAX)));
    let full = Manifest::from_parts(raw, FragmentList::default(), "").unwrap();
    let error = append(&[fragment(1)]).apply(Some(&full), &params(2)).unwrap_err();
    assert!(matches!(error, TableError::Unsupported(_)), "{error}");
}

#[test]
fn test_the_storage_version_of_a_table_changes_by_overwrite_only() {
    let base = golden("created_2_0");
    let other = CommitParams {
        data_storage_version: Some(FileVersion::V2_1),
        ..params(2)
    };
    let error = append(&[fragment(1)])
        .apply(Some(&base), &other)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("expected data_storage_version 2.0 as the table has, found 2.1"),
        "{error}"
    );
    let files = vec![DataFile {
        file_minor_version: 1,
        ..data_file(&[0, 1])
    }];
    let fragments = [Fragment::new(files, 1)];
    let next = overwrite(&fragments, BTreeMap::new())
        .apply(Some(&base), &other)
        .unwrap();
    assert_eq!(next.data_storage_version().unwrap(), FileVersion::V2_1);
    assert_eq!((next.reader_feature_flags(), next.writer_feature_flags()), (0, 0));
}

#[test]
fn test_files_of_another_version_set_a_flag_until_an_overwrite_is_without_them() {
    let base = golden("created_2_0");
    let files = |minor| {
        vec![DataFile {
            file_minor_version: minor,
            ..data_file(&[0, 1])
        }]
    };
    let flags = |manifest: &Manifest| (manifest.reader_feature_flags(), manifest.writer_feature_flags());
    let mixed = written(
        &append(&[Fragment::new(files(1), 1), Fragment::new(files(0), 1)])
            .apply(Some(&base), &params(2))
            .unwrap(),
    );
    assert_eq!(mixed.data_storage_version().unwrap(), FileVersion::V2_0);
    assert_eq!(flags(&mixed), (256, 256));
    let next = append(&[fragment(1)]).apply(Some(&mixed), &params(3)).unwrap();
    assert_eq!(flags(&next), (256, 256));
    let replaced = overwrite(&[fragment(1)], BTreeMap::new());
    assert_eq!(flags(&replaced.apply(Some(&next), &params(4)).unwrap()), (0, 0));
    let both = overwrite(&[fragment(1), Fragment::new(files(2), 1)], BTreeMap::new());
    assert_eq!(flags(&both.apply(Some(&next), &params(4)).unwrap()), (256, 256));
}

#[test]
fn test_files_of_0_1_stand_alone() {
    let old = DataFile {
        file_major_version: 0,
        file_minor_version: 2,
        column_indices: Vec::new(),
        ..data_file(&[0, 1])
    };
    let error = append(&[Fragment::new(vec![old], 1)])
        .apply(Some(&golden("created_2_0")), &params(2))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("stand beside those of version 2.0, found 0.1"),
        "{error}"
    );
}

#[test]
fn test_a_commit_that_cannot_be_right_is_refused() {
    let base = golden("created_2_0");
    let refused = |transaction: &Transaction, base: Option<&Manifest>, version, expected: &str| {
        let error = transaction.apply(base, &params(version)).unwrap_err().to_string();
        assert!(error.contains(expected), "expected '{expected}', found '{error}'");
    };
    refused(&append(&[fragment(1)]), None, 1, "expected a table to append to");
    refused(
        &append(&[fragment(1)]),
        Some(&base),
        3,
        "expected to commit version 2, found 3",
    );
    refused(&append(&[fragment(0)]), Some(&base), 2, "leave an empty fragment out");
    refused(
        &append(&[Fragment::new(vec![data_file(&[0, 7])], 1)]),
        Some(&base),
        2,
        "found field 7",
    );
    let columns = DataFile {
        column_indices: vec![0],
        ..data_file(&[0, 1])
    };
    refused(
        &append(&[Fragment::new(vec![columns], 1)]),
        Some(&base),
        2,
        "a column for each of 2 fields, found 1",
    );
    let elsewhere = DataFile {
        base_id: Some(0),
        ..data_file(&[0, 1])
    };
    refused(
        &append(&[Fragment::new(vec![elsewhere], 1)]),
        Some(&base),
        2,
        "expected a base path that the table declares, found 0",
    );
    let stable = golden("stable_row_ids").fragment_at(0).unwrap().unwrap();
    refused(&append(&[stable]), Some(&base), 2, "without row ids");
    let mut encoded = Vec::new();
    push_length_delimited(&mut encoded, 112, b"");
    let log = Transaction::decode(&Bytes::from(encoded)).unwrap();
    refused(&log, Some(&base), 2, "found UpdateMemWalState");
}

#[test]
fn test_tables_of_releases_with_known_bugs_are_not_appended_to() {
    let mut raw = golden("created_2_0").raw;
    raw.remove(field::WRITER_VERSION);
    let old = Manifest::from_parts(raw, golden("created_2_0").fragments, "").unwrap();
    let error = append(&[fragment(1)])
        .apply(Some(&old), &params(2))
        .unwrap_err()
        .to_string();
    assert!(error.contains("row counts may be wrong"), "{error}");
    overwrite(&[fragment(1)], BTreeMap::new())
        .apply(Some(&old), &params(2))
        .unwrap();
    for (version, older) in [
        ("0.8.14", true),
        ("0.8.15", false),
        ("0.8.15-beta.1", false),
        ("14.0.2", false),
        ("x", true),
    ] {
        assert_eq!(is_older_than(version, [0, 8, 15]), older, "{version}");
    }
}

#[test]
fn test_a_time_before_1970_keeps_its_nanoseconds() {
    let early = CommitParams {
        timestamp_ns: -1,
        ..params(1)
    };
    let manifest = overwrite(&[], BTreeMap::new()).apply(None, &early).unwrap();
    assert_eq!(manifest.timestamp_ns(), -1);
    assert!(Bytes::from(timestamp(-1).encode_to_vec()).len() > 2);
}

mod operations;
