//! Out-of-line bit packing: blocks of 1,024 values, all packed with the width in the description.

pub(crate) mod decode;
