//! The body `byte_stream_split` of `esker_codec::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_codec::fuzz::run("byte_stream_split", data));
