//! Stored blocks: compressed where that pays, followed by type and checksum.

use bytes::Bytes;

use super::checksum::masked;
use crate::error::{GravelerError, Result};

/// Type and checksum.
pub const BLOCK_TRAILER_LEN: usize = 5;
const RAW: u8 = 0;
const SNAPPY: u8 = 1;
/// The greatest expansion of Snappy: a copy takes three bytes for at most 64.
const MOST_EXPANSION: usize = 22;

/// Compresses blocks, reusing its buffer.
pub struct BlockSealer {
    encoder: snap::raw::Encoder,
    room: Vec<u8>,
}

impl Default for BlockSealer {
    fn default() -> Self {
        BlockSealer {
            encoder: snap::raw::Encoder::new(),
            room: Vec::new(),
        }
    }
}

impl std::fmt::Debug for BlockSealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockSealer").finish_non_exhaustive()
    }
}

impl BlockSealer {
    /// Appends a block to `out`, compressed if that saves more than an eighth; its stored length without type and checksum.
    pub fn seal(&mut self, block: &[u8], compress: bool, out: &mut Vec<u8>) -> usize {
        let packed = if compress { self.compress(block) } else { None };
        let (stored, block_type) = match packed {
            Some(length) => (self.room.get(..length).unwrap_or_default(), SNAPPY),
            None => (block, RAW),
        };
        out.extend_from_slice(stored);
        out.push(block_type);
        out.extend_from_slice(&masked(stored, block_type).to_le_bytes());
        stored.len()
    }

    fn compress(&mut self, block: &[u8]) -> Option<usize> {
        let most = snap::raw::max_compress_len(block.len());
        if self.room.len() < most {
            self.room.resize(most, 0);
        }
        let length = self.encoder.compress(block, &mut self.room).ok()?;
        (length < block.len() - block.len() / 8).then_some(length)
    }
}

/// The stored form of a data block, type and checksum included.
pub(crate) fn recompressed(block: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(block.len() + BLOCK_TRAILER_LEN);
    BlockSealer::default().seal(block, true, &mut stored);
    stored
}

/// Opens a stored block: checks the checksum and decompresses.
pub fn open(stored: &Bytes) -> Result<Bytes> {
    let corrupt = |message: String| GravelerError::corrupt("block", message);
    let length = stored.len().checked_sub(BLOCK_TRAILER_LEN);
    let parts = length.and_then(|length| stored.split_at_checked(length));
    let (body, trailer) =
        parts.ok_or_else(|| corrupt("expected a block with its trailer, found fewer bytes".into()))?;
    let &[block_type, a, b, c, d] = trailer else {
        return Err(corrupt("expected a type and a checksum, found fewer bytes".into()));
    };
    let (expected, found) = (u32::from_le_bytes([a, b, c, d]), masked(body, block_type));
    if expected != found {
        return Err(corrupt(format!(
            "expected the checksum {expected:#010x}, found {found:#010x}"
        )));
    }
    match block_type {
        RAW => Ok(stored.slice(..body.len())),
        SNAPPY => {
            let bad = |error| corrupt(format!("expected snappy's raw form, found {error}"));
            let length = snap::raw::decompress_len(body).map_err(bad)?;
            if length > MOST_EXPANSION * body.len() {
                return Err(corrupt(format!("{} bytes cannot hold {length}", body.len())));
            }
            let block = snap::raw::Decoder::new().decompress_vec(body).map_err(bad)?;
            Ok(block.into())
        }
        other => Err(GravelerError::unsupported(
            "block",
            format!("expected no compression or snappy (1), found type {other}; rewrite it with lakeFS's own options"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(block: &[u8], compress: bool) -> Bytes {
        let mut out = Vec::new();
        BlockSealer::default().seal(block, compress, &mut out);
        out.into()
    }

    #[test]
    fn test_a_block_comes_back_and_no_flipped_bit_goes_unseen() {
        let block: Vec<u8> = (0..4000u32).map(|i| (i / 100) as u8).collect();
        for compress in [false, true] {
            let stored = sealed(&block, compress);
            assert_eq!(stored.len() < 2000, compress);
            assert_eq!(open(&stored).unwrap(), block);
            for at in 0..stored.len() {
                let mut bytes = stored.to_vec();
                bytes[at] ^= 0x10;
                assert!(open(&bytes.into()).is_err(), "{at}");
                assert!(open(&stored.slice(..at)).is_err(), "{at}");
            }
        }
    }

    #[test]
    fn test_what_does_not_shrink_stays_raw() {
        let block: Vec<u8> = (0..=255u8).collect();
        assert_eq!(sealed(&block, true).len(), block.len() + BLOCK_TRAILER_LEN);
    }

    #[test]
    fn test_a_block_that_claims_gigabytes_is_corrupt_before_they_are_asked_for() {
        let mut stored = vec![0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 0x00];
        stored.push(SNAPPY);
        let crc = masked(&stored[..7], SNAPPY);
        stored.extend_from_slice(&crc.to_le_bytes());
        assert!(open(&stored.into()).unwrap_err().to_string().contains("cannot hold"));
    }
}
