//! A whole file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    esker_file::fuzz::open_and_read(bytes::Bytes::copy_from_slice(data));
});
