//! `src/generated` is what `protos/*.proto` say. After a change of those: `ESKER_GENERATE=1 cargo test --profile ci -p esker-proto`.
//!
//! A pure-Rust compiler does it, so no installed `protoc` is needed. It takes twenty crates, which is why it is a test and no build script.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::{env, fs};

const FILES: [&str; 10] = [
    "lance_file.proto",
    "lance_file_v2.proto",
    "lance_encodings_v2_0.proto",
    "lance_encodings_v2_1.proto",
    "lance_table.proto",
    "lance_transaction.proto",
    "lance_rowids.proto",
    "graveler_catalog.proto",
    "graveler_committed.proto",
    "graveler_refs.proto",
];

/// Name and text of each file of a folder, in the order of their names.
fn files_of(folder: &Path) -> Vec<(String, String)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                fs::read_to_string(&path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

#[test]
fn the_messages_are_those_of_the_proto_files() {
    let home = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let committed = home.join("src/generated");
    let fresh = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("generated");
    if fresh.exists() {
        fs::remove_dir_all(&fresh).unwrap();
    }
    fs::create_dir_all(&fresh).unwrap();
    let descriptors = protox::compile(FILES, [home.join("../../protos")]).unwrap();
    // Comments in the .proto files are prose, not Rust documentation with links and code blocks.
    prost_build::Config::new()
        .out_dir(&fresh)
        .bytes(["."])
        // Sorted, so that a message encodes to the same bytes each time.
        .btree_map(["."])
        .disable_comments(["."])
        .compile_fds(descriptors)
        .unwrap();
    if env::var_os("ESKER_GENERATE").is_some() {
        fs::remove_dir_all(&committed).unwrap();
        fs::create_dir_all(&committed).unwrap();
        for (name, text) in files_of(&fresh) {
            fs::write(committed.join(name), text).unwrap();
        }
    }
    let (found, expected) = (files_of(&committed), files_of(&fresh));
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(
            found, expected,
            "src/generated is older than protos: ESKER_GENERATE=1 cargo test -p esker-proto"
        );
    }
    assert_eq!(found.len(), expected.len());
}
