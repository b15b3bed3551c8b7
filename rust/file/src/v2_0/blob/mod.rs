//! Blob columns: packed structs of position and size, under a column encoding that says so.

pub(crate) mod decode;
pub(crate) mod encode;
