//! FSST: strings in which frequent substrings are one byte each; all values of a page share one symbol table.

pub(crate) mod decode;
pub(crate) mod encode;
