//! The body `graveler_entry` of `esker_graveler::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    esker_graveler::fuzz::run("graveler_entry", data);
});
