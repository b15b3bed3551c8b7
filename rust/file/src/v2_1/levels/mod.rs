//! Repetition and definition levels: nulls and lists of any nesting in two numbers an entry.

pub(crate) mod encode;
pub(crate) mod serialize;
