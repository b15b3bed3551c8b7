//! Byte stream split: the first bytes of all values, then all second bytes, and so on, which general compression compresses better.

pub(crate) mod decode;
pub(crate) mod encode;
