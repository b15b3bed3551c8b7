//! Structs row by row, in full zip: of each field its bytes, behind their length, u32 or u64, where the width varies. Version 2.2 has it.

pub(crate) mod decode;
pub(crate) mod encode;
