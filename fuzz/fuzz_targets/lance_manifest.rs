//! The body `lance_manifest` of `esker_table::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    assert!(!esker_table::fuzz::run("lance_manifest", data).differs);
});
