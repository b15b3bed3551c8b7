//! Dictionary encoding: each distinct value (item) once, and its index for every row.
//!
//! The numbers are the page's values, u32 where we found them and of the keys' own width where the column is a dictionary. The distinct
//! values are a buffer of the page.

pub(crate) mod decode;
pub(crate) mod encode;
mod look_up;
mod texts;
mod words;
