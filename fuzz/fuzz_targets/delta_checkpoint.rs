//! The body `delta_checkpoint` of `esker_delta::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    esker_delta::fuzz::run("delta_checkpoint", data);
});
