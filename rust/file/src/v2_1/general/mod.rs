//! General compression, zstd or lz4: of the first buffer of each chunk, of each value by itself, or of a whole buffer.

pub(crate) mod decode;
pub(crate) mod encode;
