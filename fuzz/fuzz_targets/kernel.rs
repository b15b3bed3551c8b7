//! The body in `esker_codec::fuzz` that has this binary's name.
#![no_main]

use esker_codec::fuzz::TARGETS;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (_, body) = TARGETS
        .iter()
        .find(|(name, _)| *name == env!("CARGO_BIN_NAME"))
        .expect("a body of that name");
    body(data);
});
