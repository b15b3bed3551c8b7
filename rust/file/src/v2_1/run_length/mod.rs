//! Run-length encoding: the value of each run in one buffer, its length (a byte) in another.
//!
//! Where runs stand in one buffer, as levels and dictionaries do, it is `u64 bytes of the values | values | lengths`.

pub(crate) mod decode;
pub(crate) mod encode;
