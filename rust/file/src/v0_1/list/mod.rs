//! Lists: n + 1 offsets (i32, i64 for large lists) as plain values, that count the items of the same group.

pub(crate) mod decode;
pub(crate) mod encode;
