//! Strings in which frequent pieces are one byte each.

pub(crate) mod decode;
