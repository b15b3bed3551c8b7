//! zstd or lz4 around another compression.

pub(crate) mod decode;
