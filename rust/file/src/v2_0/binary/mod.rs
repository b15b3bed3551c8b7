//! Strings and binary: end offsets with nulls folded in, and the bytes of all values.

pub(crate) mod decode;
pub(crate) mod encode;
