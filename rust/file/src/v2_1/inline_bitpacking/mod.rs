//! Bit packing in which each 1,024 values have a width of their own, which stands before them.

pub(crate) mod decode;
pub(crate) mod encode;
