//! File version 2.0: one column for each node of the schema, one array encoding for each page.
//!
//! A list is a column of end offsets followed by the columns of its items; a struct is an empty header column followed by its fields'
//! columns; everything else is one column. Each encoding has a folder with a `decode` and an `encode`.

pub(crate) mod binary;
pub(crate) mod bitpacked;
pub(crate) mod bitpacked_for_non_neg;
pub(crate) mod blob;
pub(crate) mod check;
pub(crate) mod columns;
pub(crate) mod compression;
pub(crate) mod decode;
pub(crate) mod dictionary;
pub(crate) mod encode;
pub(crate) mod fixed_size_list;
pub(crate) mod fixed_width;
pub(crate) mod flat;
pub(crate) mod fsst;
pub(crate) mod list;
pub(crate) mod nullable;
pub(crate) mod packed_struct;
pub(crate) mod page;
pub(crate) mod read;
pub(crate) mod retain;
pub(crate) mod write;
