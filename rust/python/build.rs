//! Folds functions of the same machine code into one, where the linker can: what DataFusion and Arrow make of one generic function for each
//! type is often the same.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Whether rustc links with the LLD that it brings along: it does for this target, unless someone asked for another linker.
fn links_with_lld() -> bool {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let chosen = !variable("RUSTC_LINKER").is_empty() || variable("CARGO_ENCODED_RUSTFLAGS").contains("link");
    if variable("TARGET") != "x86_64-unknown-linux-gnu" || chosen {
        return false;
    }
    let found = Command::new(variable("RUSTC")).args(["--print", "sysroot"]).output();
    let sysroot = found
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_default();
    PathBuf::from(sysroot.trim())
        .join("lib/rustlib/x86_64-unknown-linux-gnu/bin/gcc-ld/ld.lld")
        .exists()
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RUSTC_LINKER");
    if links_with_lld() {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--icf=all");
    }
}
