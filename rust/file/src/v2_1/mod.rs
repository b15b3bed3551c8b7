//! Files of versions 2.1 and 2.2: a column for each leaf of the schema, the nesting in repetition and definition levels.
//!
//! A page has a layout, which says where values and levels lie, and its values a tree of compressions; each has a folder.

#![allow(dead_code)]

pub(crate) mod check;
pub(crate) mod columns;
pub(crate) mod constant;
pub(crate) mod encode;
pub(crate) mod fixed_size_list;
pub(crate) mod flat;
pub(crate) mod full_zip;
pub(crate) mod levels;
pub(crate) mod message;
pub(crate) mod mini_block;
pub(crate) mod path;
pub(crate) mod read;
pub(crate) mod values;
pub(crate) mod variable;
pub(crate) mod write;
