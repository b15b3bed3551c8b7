//! Mini-block: the layout of small values, in chunks that are decoded whole.
//!
//! ```text
//! buffer 0   a word a chunk: (8-byte words in the chunk - 1) << 4 | log2 of its values, 0 for the last; u16, in version 2.2 u32
//! buffer 1   the chunks
//! buffer 2   the dictionary, if there is one
//! last       the repetition index, if there are lists: for each chunk rows that end in it, entries left over; u64
//!
//! a chunk    u16 entries, 0 without levels | u16 bytes of repetition levels, if any | u16 of definition levels, if any
//!            | bytes of each value buffer, u16, in version 2.2 u32
//!            | repetition levels | definition levels | value buffers; every part starts at a multiple of 8
//! ```

pub(crate) mod chunk;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod index;
pub(crate) mod page;
