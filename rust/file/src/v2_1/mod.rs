//! Files of versions 2.1 and 2.2: a column for each leaf of the schema, the nesting in repetition and definition levels.
//!
//! A page has a layout, which says where values and levels lie, and its values a tree of compressions; each has a folder with a `decode`
//! and an `encode`.

pub(crate) mod blob;
pub(crate) mod builder;
pub(crate) mod byte_stream_split;
pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod choose;
pub(crate) mod columns;
pub(crate) mod constant;
pub(crate) mod decode;
pub(crate) mod describe;
pub(crate) mod dictionary;
pub(crate) mod encode;
pub(crate) mod fetch;
pub(crate) mod fixed_size_list;
pub(crate) mod flat;
pub(crate) mod fsst;
pub(crate) mod full_zip;
pub(crate) mod general;
pub(crate) mod hints;
pub(crate) mod inline_bitpacking;
mod keyed;
pub(crate) mod leaf;
pub(crate) mod levels;
pub(crate) mod message;
pub(crate) mod mini_block;
pub(crate) mod out_of_line_bitpacking;
pub(crate) mod packed_struct;
pub(crate) mod page;
pub(crate) mod path;
pub(crate) mod read;
pub(crate) mod run_length;
pub(crate) mod state;
pub(crate) mod statistics;
pub(crate) mod tree;
pub(crate) mod turns;
pub(crate) mod values;
pub(crate) mod variable;
pub(crate) mod variable_packed_struct;
pub(crate) mod write;
