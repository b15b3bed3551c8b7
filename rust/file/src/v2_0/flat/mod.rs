//! Values of one width, one after the other. 1 bit is a bitmap; anything else is whole bytes.

pub(crate) mod decode;
pub(crate) mod encode;
