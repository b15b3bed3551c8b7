//! The body `json` of `esker_expr::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    esker_expr::fuzz::run("json", data);
});
