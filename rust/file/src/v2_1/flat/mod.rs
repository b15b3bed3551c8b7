//! Values of one width, as they are.

pub(crate) mod decode;
pub(crate) mod encode;
