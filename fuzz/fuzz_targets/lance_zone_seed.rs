//! The body `lance_zone_seed` of `esker_table::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    assert!(!esker_table::fuzz::run("lance_zone_seed", data).differs);
});
