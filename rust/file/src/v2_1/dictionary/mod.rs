//! Indices into the values of a dictionary, which the page keeps beside its chunks.

pub(crate) mod decode;
