//! Constant layout and encoding: pages and blocks of one value, or of nulls alone.
//!
//! ```text
//! buffers   none | repetition levels, definition levels | the value | the value, repetition levels, definition levels
//!           the value only where the description does not hold it: u32 number of its Arrow buffers, u32 size of each, the buffers
//! ```

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod page;
mod runs;
