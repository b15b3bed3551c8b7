//! The body `packed_rows` of `esker_codec::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_codec::fuzz::run("packed_rows", data));
