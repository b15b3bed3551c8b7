//! The first bytes of all values, then all second bytes, and so on: what general compression makes more of than of the values.

pub(crate) mod decode;
pub(crate) mod encode;
