//! The footer: the last 53 bytes, with the handles of metaindex and index.

use crate::error::{GravelerError, Result};
use crate::varint::{put_uvarint, uvarint};

/// Bytes of the footer.
pub const FOOTER_LEN: usize = 53;
const CRC32C: u8 = 1;
const VERSION: u32 = 2;
const ROCKSDB: [u8; 8] = [0xf7, 0xcf, 0xf4, 0x85, 0xb7, 0x41, 0xe2, 0x88];
const PEBBLE: [u8; 8] = *b"\xf0\x9f\xaa\xb3\xf0\x9f\xaa\xb3";
const LEVELDB: [u8; 8] = [0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb];

/// The position of a block, without the type and checksum after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    /// From the start of the file.
    pub offset: u64,
    /// As it is stored.
    pub length: u64,
}

impl Handle {
    /// A handle at the front of `bytes`, and how long it is.
    pub fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let (offset, first) = uvarint(bytes)?;
        let (length, second) = uvarint(bytes.get(first..)?)?;
        Some((Handle { offset, length }, first + second))
    }

    /// Appends the handle.
    pub fn encode_to(self, buffer: &mut Vec<u8>) {
        put_uvarint(buffer, self.offset);
        put_uvarint(buffer, self.length);
    }
}

/// A table's footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footer {
    /// The block that names the properties.
    pub metaindex: Handle,
    /// The index, or its top level.
    pub index: Handle,
}

impl Footer {
    /// Decodes the footer at the end of `tail`, the last bytes of a file of `file_size` bytes.
    pub fn decode(tail: &[u8], file_size: u64) -> Result<Self> {
        let corrupt = |message: String| GravelerError::corrupt("footer", message);
        let start = tail.len().checked_sub(FOOTER_LEN);
        let footer = start.and_then(|start| tail.get(start..));
        let footer = footer.ok_or_else(|| corrupt(format!("expected {FOOTER_LEN} bytes, found {}", tail.len())))?;
        let (rest, magic) = footer
            .split_last_chunk::<8>()
            .ok_or_else(|| corrupt("expected a magic number".into()))?;
        let (rest, version) = rest
            .split_last_chunk::<4>()
            .ok_or_else(|| corrupt("expected a version".into()))?;
        let version = u32::from_le_bytes(*version);
        match *magic {
            ROCKSDB if version == VERSION => {}
            ROCKSDB => return Err(unsupported(&format!("RocksDB's version {version}"))),
            PEBBLE => return Err(unsupported(&format!("Pebble's own version {version}"))),
            LEVELDB => return Err(unsupported("LevelDB's")),
            other => {
                return Err(corrupt(format!(
                    "expected the magic number {ROCKSDB:02x?}, found {other:02x?}; this is no SSTable"
                )))
            }
        }
        let (checksum, rest) = rest
            .split_first()
            .ok_or_else(|| corrupt("expected a checksum type".into()))?;
        if *checksum != CRC32C {
            return Err(unsupported(&format!("checksum type {checksum}")));
        }
        let handles = Handle::decode(rest).and_then(|(metaindex, used)| {
            let (index, _) = Handle::decode(rest.get(used..)?)?;
            Some(Footer { metaindex, index })
        });
        let found = handles.ok_or_else(|| corrupt("expected two handles, found none".into()))?;
        for handle in [found.metaindex, found.index] {
            if handle
                .offset
                .checked_add(handle.length)
                .is_none_or(|end| end > file_size)
            {
                return Err(corrupt(format!(
                    "expected blocks within the {file_size} bytes of the file, found {handle:?}"
                )));
            }
        }
        Ok(found)
    }

    /// Appends the footer.
    pub fn encode_to(self, buffer: &mut Vec<u8>) {
        let mut footer = Vec::with_capacity(FOOTER_LEN);
        footer.push(CRC32C);
        self.metaindex.encode_to(&mut footer);
        self.index.encode_to(&mut footer);
        footer.resize(FOOTER_LEN - 12, 0);
        buffer.extend_from_slice(&footer);
        buffer.extend_from_slice(&VERSION.to_le_bytes());
        buffer.extend_from_slice(&ROCKSDB);
    }
}

fn unsupported(found: &str) -> GravelerError {
    GravelerError::unsupported(
        "footer",
        format!("expected RocksDB's table format version 2 with CRC-32C, found {found}; rewrite it with lakeFS's own options"),
    )
}
