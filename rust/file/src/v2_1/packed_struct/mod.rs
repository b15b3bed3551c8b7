//! Structs row by row: the bytes of a row's fields one after the other. All fields have a fixed width and no nulls.

pub(crate) mod decode;
pub(crate) mod encode;
