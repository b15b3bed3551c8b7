//! Strings in which frequent pieces are one byte each; all values of a page share one table of pieces.

pub(crate) mod decode;
pub(crate) mod encode;
