//! Inline bit packing: each 1,024 values have their own width, stored before them.

pub(crate) mod decode;
pub(crate) mod encode;
