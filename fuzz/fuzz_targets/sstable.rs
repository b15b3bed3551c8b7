//! A table, a block and a message of `esker_graveler::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let bytes = bytes::Bytes::copy_from_slice(data);
    let _ = esker_graveler::fuzz::read_table(bytes.clone());
    let _ = esker_graveler::fuzz::read_block(bytes);
    esker_graveler::fuzz::read_message(data);
});
