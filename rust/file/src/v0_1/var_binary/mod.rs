//! Strings and binary: the bytes of all values, then n + 1 offsets (i64) that count from the start of the file.

pub(crate) mod decode;
pub(crate) mod encode;
