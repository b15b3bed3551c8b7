//! The body `delta_values` of `esker_delta::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    esker_delta::fuzz::run("delta_values", data);
});
