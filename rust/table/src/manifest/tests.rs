use std::path::{Path, PathBuf};

use super::*;
use crate::raw::{push_length_delimited, push_varint};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/compat/golden/manifests");
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/fixtures/lance");

fn manifests_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            manifests_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "manifest") {
            found.push(path);
        }
    }
}

/// All manifests of a folder; none, with a printed reason, where the folder is absent.
fn read_all(folder: &str) -> Vec<(String, Bytes)> {
    if !Path::new(folder).exists() {
        println!("skipped: {folder} is not there");
        return vec![];
    }
    let mut paths = Vec::new();
    manifests_below(Path::new(folder), &mut paths);
    assert!(!paths.is_empty(), "{folder} holds no manifest");
    paths.sort();
    paths
        .into_iter()
        .map(|path| (path.display().to_string(), std::fs::read(path).unwrap().into()))
        .collect()
}

fn golden(name: &str) -> Manifest {
    let path = format!("{GOLDEN}/{name}.manifest");
    Manifest::decode(&std::fs::read(&path).unwrap().into(), &path).unwrap()
}

/// A manifest file around a message.
fn file_around(sections: &[&[u8]], message: &[u8]) -> Bytes {
    let mut out = Vec::new();
    for section in sections {
        push_section(&mut out, section).unwrap();
    }
    let position = push_section(&mut out, message).unwrap();
    push_footer(&mut out, position);
    out.into()
}

#[test]
fn test_todays_manifests_are_rebuilt_byte_for_byte() {
    let files = read_all(GOLDEN);
    assert!(files.len() >= 11);
    for (path, data) in files {
        let manifest = Manifest::decode(&data, &path).unwrap();
        assert_eq!(manifest.encode().unwrap(), data, "{path}");
        assert_eq!(manifest.build().unwrap().concat(), data, "{path}");
    }
}

#[test]
fn test_manifests_of_old_releases_keep_all_they_hold() {
    for (path, data) in read_all(FIXTURES) {
        let manifest = Manifest::decode(&data, &path).unwrap();
        assert_eq!(manifest.encode().unwrap(), data, "{path}");
        let rebuilt = Manifest::decode(&Bytes::from(manifest.build().unwrap().concat()), &path).unwrap();
        assert_eq!(rebuilt.index_section, manifest.index_section, "{path}");
        assert_eq!(rebuilt.fragments.records(), manifest.fragments.records(), "{path}");
        let without_positions = |manifest: &Manifest| {
            let mut raw = manifest.raw.clone();
            for position in [
                field::INDEX_SECTION,
                field::TRANSACTION_SECTION_OLD,
                field::TRANSACTION_SECTION,
            ] {
                raw.remove(position);
            }
            raw.encode()
        };
        assert_eq!(without_positions(&rebuilt), without_positions(&manifest), "{path}");
        manifest.check_readable().unwrap();
        for fragment in manifest.fragments() {
            let fragment = fragment.unwrap();
            assert!(!fragment.files().is_empty(), "{path}");
            fragment.files().iter().for_each(|file| assert!(file.version().is_ok()));
        }
        assert!(manifest.version() > 0 && manifest.timestamp_ns() > 0, "{path}");
    }
}

#[test]
fn test_old_releases_are_read_as_they_meant_it() {
    let version = |table: &str, version: u64| {
        let path = format!("{FIXTURES}/{table}/_versions/{version}.manifest");
        let data = std::fs::read(&path).ok()?;
        Some(Manifest::decode(&data.into(), &path).unwrap())
    };
    let Some(no_counts) = version("v0.7.5/with_deletions", 2) else {
        println!("skipped: {FIXTURES} is not there");
        return;
    };
    assert_eq!(
        (no_counts.num_rows().unwrap(), no_counts.writer_version()),
        (None, None)
    );
    assert!(no_counts.fragments.has_deletions().unwrap());
    assert_eq!(no_counts.data_storage_version().unwrap(), FileVersion::V0_1);
    for (table, expected) in [
        ("v0.15.0/v1_with_files.lance", FileVersion::V0_1),
        ("v0.15.0/v2_with_files.lance", FileVersion::V2_0),
        ("v0.15.0/v1_no_files.lance", FileVersion::V0_1),
        ("v0.15.0/v2_no_files.lance", FileVersion::V2_2),
    ] {
        assert_eq!(
            version(table, 1).unwrap().data_storage_version().unwrap(),
            expected,
            "{table}"
        );
    }
    assert!(version("v0.8.14/corrupt_index", 5).unwrap().has_indices());
    assert_eq!(version("v0.5.9/no_fragments", 1).unwrap().num_fragments(), 0);
}

#[test]
fn test_what_a_manifest_says() {
    let manifest = golden("index_config_metadata_deletions");
    assert_eq!(
        (
            manifest.version(),
            manifest.num_fragments(),
            manifest.num_rows().unwrap()
        ),
        (6, 2, Some(4))
    );
    assert_eq!(
        (manifest.reader_feature_flags(), manifest.writer_feature_flags()),
        (1, 9)
    );
    assert_eq!(manifest.config()["owner"], "golden");
    assert_eq!(manifest.table_metadata()["about"], "golden");
    assert_eq!(manifest.writer_version(), Some(("lance", "14.0.2")));
    assert_eq!(manifest.max_fragment_id().unwrap(), Some(1));
    assert_eq!(
        (manifest.branch(), manifest.next_row_id(), manifest.has_indices()),
        (None, 0, true)
    );
    assert_eq!(manifest.data_storage_version().unwrap(), FileVersion::V2_0);
    let schema = manifest.schema().unwrap();
    assert_eq!(
        schema
            .fields
            .iter()
            .map(|f| (f.name.as_str(), f.id))
            .collect::<Vec<_>>(),
        [("a", 0), ("s", 1)]
    );
    assert_eq!(schema.metadata["k"], b"v");
    let transaction = manifest.inline_transaction().unwrap().unwrap();
    assert_eq!(manifest.transaction_file(), Some(transaction.file_name().as_str()));
    assert_eq!((transaction.kind().name(), transaction.read_version()), ("Delete", 5));
    assert_eq!(manifest.fragment(1).unwrap().unwrap().num_deletions(), Some(1));
    assert_eq!(manifest.fragment_at(0).unwrap().unwrap().id(), 0);
    assert!(manifest.fragment(2).unwrap().is_none() && manifest.fragment_at(2).unwrap().is_none());
}

#[test]
fn test_versions_of_data_files_are_told() {
    for (name, version) in [
        ("created_2_0", FileVersion::V2_0),
        ("created_2_1", FileVersion::V2_1),
        ("created_2_2", FileVersion::V2_2),
    ] {
        let manifest = golden(name);
        assert_eq!(manifest.data_storage_version().unwrap(), version);
        assert_eq!(
            manifest.fragment_at(0).unwrap().unwrap().files()[0].version().unwrap(),
            version
        );
        manifest.check_writable().unwrap();
    }
}

#[test]
fn test_a_table_of_mixed_file_versions_is_read_and_written() {
    let mixed = golden("mixed_file_versions");
    mixed.check_readable().unwrap();
    mixed.check_writable().unwrap();
    let versions = mixed.fragments().map(|f| f.unwrap().files()[0].version().unwrap());
    assert_eq!(versions.collect::<Vec<_>>(), [FileVersion::V2_0, FileVersion::V2_1]);
}

#[test]
fn test_a_table_over_several_roots_says_where_they_are() {
    for name in ["base_paths", "branch"] {
        let manifest = golden(name);
        manifest.check_readable().unwrap();
        manifest.check_writable().unwrap();
        let roots: Vec<_> = manifest
            .base_paths()
            .iter()
            .map(|base| (base.id, base.is_dataset_root))
            .collect();
        assert_eq!(roots, [(0, true)]);
        let fragment = manifest.fragment_at(0).unwrap().unwrap();
        assert!(fragment.files()[0].location().starts_with("_bases/0/data/"));
    }
}

#[test]
fn test_tables_that_need_more_are_refused_by_name() {
    let stable = golden("stable_row_ids");
    stable.check_readable().unwrap();
    assert_eq!(stable.next_row_id(), 3);
    assert!(stable.fragment_at(0).unwrap().unwrap().has_row_ids());
    stable.check_writable().unwrap();
    let mut tree = Vec::new();
    push_length_delimited(&mut tree, field::FRAGMENT_TREE, b"");
    let message = Manifest::decode(&file_around(&[], &tree), "m")
        .unwrap()
        .check_readable()
        .unwrap_err()
        .to_string();
    assert!(message.contains("fragment tree"), "{message}");
}

#[test]
fn test_an_inline_transaction_is_found_under_both_numbers() {
    let transaction = golden("created_2_0").inline_transaction().unwrap().unwrap().encode();
    for number in [field::TRANSACTION_SECTION_OLD, field::TRANSACTION_SECTION] {
        let mut message = Vec::new();
        push_varint(&mut message, u64::from(number) << 3);
        push_varint(&mut message, 0);
        let manifest = Manifest::decode(&file_around(&[&transaction], &message), "m").unwrap();
        assert_eq!(manifest.inline_transaction().unwrap().unwrap().encode(), transaction);
    }
    assert!(Manifest::decode(&file_around(&[], &[]), "m")
        .unwrap()
        .inline_transaction()
        .unwrap()
        .is_none());
}

#[test]
fn test_a_section_that_ends_behind_the_manifest_is_corrupt() {
    for position in [1u64, 6, 7, 100, u64::MAX] {
        let mut message = Vec::new();
        push_varint(&mut message, u64::from(field::INDEX_SECTION) << 3);
        push_varint(&mut message, position);
        let error = Manifest::decode(&file_around(&[b"abc"], &message), "m")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("index section") && error.contains(&position.to_string()),
            "{error}"
        );
    }
}

#[test]
fn test_the_frame_is_checked() {
    let good = file_around(&[], &[]);
    Manifest::decode(&good, "m").unwrap();
    let mut longer = good.to_vec();
    longer.insert(4, 0);
    let mut elsewhere = good.to_vec();
    elsewhere[4] = 5;
    for damaged in [
        longer,
        elsewhere,
        b"PAR1".to_vec(),
        good[..19].to_vec(),
        good[1..].to_vec(),
    ] {
        let error = Manifest::decode(&Bytes::from(damaged), "_versions/1.manifest").unwrap_err();
        assert!(matches!(error, TableError::Corrupt { .. }) && error.to_string().contains("_versions/1.manifest"));
    }
}

/// Calls every getter of a manifest.
fn ask(manifest: &Manifest) {
    let _ = (
        manifest.check_writable(),
        manifest.data_storage_version(),
        manifest.schema().map(|s| s.to_arrow()),
    );
    let _ = (
        manifest.inline_transaction().map(|t| t.map(|t| t.operation())),
        manifest.max_fragment_id(),
    );
    let _ = (
        manifest.num_rows(),
        manifest.fragments.has_deletions(),
        manifest.build(),
        manifest.timestamp_ns(),
    );
    manifest.fragments().for_each(|fragment| {
        let _ = fragment.map(|f| {
            (
                f.num_rows(),
                f.files().iter().filter(|file| file.version().is_ok()).count(),
            )
        });
    });
}

#[test]
fn test_every_prefix_is_an_error() {
    for (path, data) in read_all(GOLDEN) {
        for length in 0..data.len() {
            assert!(
                Manifest::decode(&data.slice(..length), &path).is_err(),
                "{path}: {length} bytes"
            );
        }
    }
}

#[test]
fn test_changed_bits_never_panic() {
    for (path, data) in read_all(GOLDEN) {
        for position in 0..data.len() {
            for bit in 0..8 {
                let mut damaged = data.to_vec();
                damaged[position] ^= 1 << bit;
                if let Ok(manifest) = Manifest::decode(&Bytes::from(damaged), &path) {
                    ask(&manifest);
                }
            }
        }
    }
}
