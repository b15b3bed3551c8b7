//! A struct of fixed-width fields, row by row in one buffer: one read fetches all the fields of a row.

pub(crate) mod decode;
pub(crate) mod encode;
