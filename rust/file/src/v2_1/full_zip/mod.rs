//! Full zip: the layout of large values, each stored after its own levels.
//!
//! ```text
//! buffer 0   for each entry: a control word, if there are levels | the value, if the entry has one
//! buffer 1   where each row starts in buffer 0, and where the last one ends, in 1, 2, 4 or 8 bytes each; absent where a row's place
//!            can be computed: values of one width without lists
//!
//! a control word    the repetition level above the definition level's bits, in 1, 2 or 4 bytes
//! a value           of fixed width: its bytes, null or not; of variable width: length (u32 or u64) and bytes, nothing for a null
//! ```

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod page;
