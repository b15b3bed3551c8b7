//! Blocks of 1024 values, each packed with a width of its own that stands before it.

pub(crate) mod decode;
