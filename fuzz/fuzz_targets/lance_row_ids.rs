//! The body `lance_row_ids` of `esker_table::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    assert!(!esker_table::fuzz::run("lance_row_ids", data).differs);
});
