//! The body `delta_vector` of `esker_delta::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    esker_delta::fuzz::run("delta_vector", data);
});
