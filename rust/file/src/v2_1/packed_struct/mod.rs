//! Structs row by row, all fields of fixed width.

pub(crate) mod decode;
