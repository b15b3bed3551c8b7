//! Integers as a plain bit stream, lowest bit first. Read, never written: other writers choose it only in test files.

pub(crate) mod decode;
