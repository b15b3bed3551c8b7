//! SSTables: sorted keys with values, as RocksDB's table format version 2 has them and as lakeFS's pinned Pebble writes them.
//!
//! ```text
//! data block* | index block, or: index partition* | top-level index | properties | metaindex | footer (53 bytes)
//!
//! block    entries | restart offset (u32)* | number of restarts (u32) | 0 raw, 1 snappy (u8) | masked CRC-32C (u32)
//! entry    shared (varint) | unshared (varint) | value length (varint) | unshared key bytes | value
//! key      user key | 01 00 00 00 00 00 00 00: sequence number 0, kind "set"
//! footer   01: CRC-32C | handle of metaindex | handle of index | zeros | 02 00 00 00 | magic (8 bytes)
//! handle   offset (varint) | length without the 5 bytes after a block (varint)
//! ```
//!
//! All integers are little endian. Data and index blocks are compressed where that saves an eighth; the others never are.

pub mod block;
pub mod block_cursor;
pub mod block_writer;
mod checksum;
pub mod footer;
mod index_key;
pub mod properties;
pub mod read;
pub mod writer;

pub use block_cursor::BlockCursor;
pub use footer::{Footer, Handle, FOOTER_LEN};
pub(crate) use index_key::shared_prefix;
pub use properties::{Properties, UserProperties};
pub use writer::TableWriter;

/// The trailer after the user key: sequence number 0, kind "set".
pub(crate) const TRAILER: [u8; 8] = [1, 0, 0, 0, 0, 0, 0, 0];
/// The length of the trailer.
pub(crate) const TRAILER_LEN: usize = 8;

/// The user key of a stored key.
pub(crate) fn user_key(key: &[u8]) -> Option<&[u8]> {
    key.split_at_checked(key.len().checked_sub(TRAILER_LEN)?)
        .map(|(user, _)| user)
}

#[cfg(test)]
pub(crate) mod tests;
