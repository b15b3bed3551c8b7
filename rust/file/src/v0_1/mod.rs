//! Files of version 0.1, also called "legacy": groups of rows, and in each a page for every field.
//!
//! ```text
//! pages                  of group 0, field by field; of group 1; ...
//! page table             i64 position, i64 values: field by field from the lowest id to the highest, in each group by group
//! statistics             pages and a page table of their own                                                      (not in every file)
//! dictionary values      of each dictionary column
//! manifest               u32 length, protobuf: carries the schema
//! metadata               u32 length, protobuf: group offsets, where the page table, the statistics and the manifest are
//! footer (16 bytes)      u64 position of the metadata, u16 major, u16 minor, "LANC"
//! ```
//!
//! | field | page | what is lost |
//! |---|---|---|
//! | fixed width, lists of fixed size | [`plain`] | nulls |
//! | strings and binary | [`var_binary`] | "" and null are one |
//! | dictionary | [`dictionary`]: its keys, plain | null keys |
//! | list | [`list`]: offsets, plain; the items are a field of their own | null lists |
//! | struct | none; its children are fields of their own | null structs |
//! | null | no bytes | nothing |
//!
//! Source: the Lance format document at version 0.1, "File Structure", "Encodings" and "Statistics".

pub(crate) mod check;
pub(crate) mod column;
pub(crate) mod describe;
pub(crate) mod dictionary;
pub(crate) mod encode;
mod extents;
mod list;
pub(crate) mod metadata;
mod page;
mod plain;
pub(crate) mod read;
pub(crate) mod statistics;
mod var_binary;
pub(crate) mod write;
