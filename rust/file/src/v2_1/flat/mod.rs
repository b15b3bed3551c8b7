//! Values of one width, as they are.

pub(crate) mod encode;
