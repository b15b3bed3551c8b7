//! Lists of one length, flattened; the items' validity is stored with the values.
//!
//! In a chunk each layer with validity has a buffer of bits before the items' buffer. In full zip each value is preceded by its own bits,
//! whole bytes for each layer.

pub(crate) mod decode;
pub(crate) mod encode;
