//! A value and a length for each run of equal values.

pub(crate) mod decode;
