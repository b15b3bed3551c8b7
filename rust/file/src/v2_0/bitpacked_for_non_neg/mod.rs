//! Integers in blocks of 1024, transposed as FastLanes does it. Read, never written: see [`super::bitpacked`].

pub(crate) mod decode;
