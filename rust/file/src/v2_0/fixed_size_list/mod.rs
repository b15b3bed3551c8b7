//! Lists that all have one length: the items of all of them in one array.

pub(crate) mod decode;
pub(crate) mod encode;
