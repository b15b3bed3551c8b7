//! Blocks of 1024 values, all packed with the width that the description holds.

pub(crate) mod decode;
