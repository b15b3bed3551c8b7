//! The body `range_info` of `esker_graveler::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    esker_graveler::fuzz::run("range_info", data);
});
