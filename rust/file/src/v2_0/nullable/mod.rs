//! Validity beside values: none stored, one bit a value, or nothing but nulls.

pub(crate) mod decode;
pub(crate) mod encode;
