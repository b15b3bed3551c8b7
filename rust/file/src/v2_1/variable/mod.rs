//! Values of any length.
//!
//! ```text
//! in a chunk        offsets from the chunk's start, one more than values; then the bytes; padded to the width of an offset
//! as a dictionary   u32 width of an offset in bits | u32 where the bytes start | offsets from 0, one more than values | the bytes;
//!                   all of it u64 for offsets of 64 bits
//! ```

pub(crate) mod decode;
pub(crate) mod encode;
