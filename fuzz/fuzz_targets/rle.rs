//! The body `rle` of `esker_codec::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_codec::fuzz::run("rle", data));
