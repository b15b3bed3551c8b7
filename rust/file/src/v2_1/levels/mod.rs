//! Repetition and definition levels: nulls and lists of any nesting in two numbers per entry.
//!
//! ```text
//! rows           [[1, null], null, [], [2]]          layers, innermost first: nullable item, null and empty list
//! definition      0  1       2     3    0            0 all there, 1 null item, 2 null list, 3 empty list
//! repetition      1  0       1     1    1            1 a new list starts, 0 the list goes on
//! values          1  ?                  2            null and empty lists have no value: they are invisible
//! ```
//!
//! Levels are kept as they are stored: little-endian u16.

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod layers;
pub(crate) mod serialize;
pub(crate) mod unravel;
