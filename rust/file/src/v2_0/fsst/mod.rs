//! Strings and binary whose values are compressed one by one, with a table of symbols for the page.
//!
//! Inside lies encoding `binary`, its bytes and ends those of the compressed values.

pub(crate) mod decode;
pub(crate) mod encode;
