//! The body `contents` of `esker_graveler::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    esker_graveler::fuzz::run("contents", data);
});
