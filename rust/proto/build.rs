//! Compiles `protos/*.proto` with a pure-Rust compiler: no installed `protoc` is needed.

use std::error::Error;
use std::path::PathBuf;

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

fn main() -> Result<(), Box<dyn Error>> {
    let protos = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../protos");
    println!("cargo:rerun-if-changed=build.rs");
    for file in FILES {
        println!("cargo:rerun-if-changed={}", protos.join(file).display());
    }
    let descriptors = protox::compile(FILES, [&protos])?;
    // Comments in the .proto files are prose, not Rust documentation with links and code blocks.
    prost_build::Config::new()
        .bytes(["."])
        // Sorted, so that a message encodes to the same bytes each time.
        .btree_map(["."])
        .disable_comments(["."])
        .compile_fds(descriptors)?;
    Ok(())
}
