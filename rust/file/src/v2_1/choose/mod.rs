//! Chooses the layout and the compression of a page: the one place that decides.
//!
//! Every way to write a page is a candidate with its price: bytes, counted or estimated from the values, and the time that it takes to decode
//! them. The write's [`Goal`](crate::Goal) says how much time a byte is worth; a hint of the field's metadata goes before it.
//!
//! | the values | candidates | barred |
//! |---|---|---|
//! | none is there | constant, only levels | |
//! | all the same | constant | before version 2.2 |
//! | of 8 to 64 bits | flat, bit packed, runs, split bytes | runs beyond rle-threshold, if given; split bytes without general compression |
//! | other fixed width | flat | |
//! | of any length | variable, symbols | symbols where they gain nothing |
//! | repeated, of 16 bits and more or any length | dictionary, its indices as values of 32 bits | beyond dict-divisor or dict-size-ratio; of 32 bits and less where it gains less than a fifth |
//! | 256 bytes and more on average | full zip: as they are, as symbols, each compressed by itself | mini-block |
//! | fixed-size lists | mini-block below 256 bytes, full zip above | |
//! | packed structs | mini-block | |
//! | dictionary columns | dictionary, indices as wide as the keys | |
//!
//! Each of the ways in chunks is a candidate again with lz4 and zstd around each chunk, as far as the goal or a hint allows them.

mod candidate;
mod constant;
mod dictionary;
mod fixed;
mod price;
mod sample;
mod variable;
mod way;

pub(super) use candidate::{candidates, choice, values_bytes, Candidate};
pub(super) use dictionary::{encode_items, PlannedDictionary};
pub(super) use fixed::{asked_scheme, index_candidates, index_plan};
pub(super) use variable::single_candidates;
pub(crate) use way::Target;
pub(super) use way::{fixed_chunks, zips_lists, Coding, Way};
