//! The body `lance_deletions_bitmap` of `esker_table::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    assert!(!esker_table::fuzz::run("lance_deletions_bitmap", data).differs);
});
