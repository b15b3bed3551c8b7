//! The body `outline_bitpack` of `esker_codec::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_codec::fuzz::run("outline_bitpack", data));
