//! Integers as a plain stream of bits, lowest bit first. Read, never written: others choose it only in files of their own tests.

pub(crate) mod decode;
