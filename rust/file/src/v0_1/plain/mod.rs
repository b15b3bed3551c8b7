//! Values of one fixed width, side by side, without validity; booleans as bits, least significant first.

pub(crate) mod decode;
pub(crate) mod encode;
