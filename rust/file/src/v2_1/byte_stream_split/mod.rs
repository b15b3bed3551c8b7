//! The first bytes of all values, then their second bytes, and so on.

pub(crate) mod decode;
