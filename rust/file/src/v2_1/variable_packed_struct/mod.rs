//! Structs row by row, each field compressed by itself.

pub(crate) mod decode;
