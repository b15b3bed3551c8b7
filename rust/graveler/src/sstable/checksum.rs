//! The checksum after each block: CRC-32C of its bytes and its type, masked (rotated, plus a constant) so that bytes with embedded
//! checksums can be checksummed.

/// The masked checksum of a block as it is stored, and its type.
pub(super) fn masked(stored: &[u8], block_type: u8) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(stored), &[block_type]);
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    #[test]
    fn test_a_block_of_lakefs_has_the_checksum_that_it_says() {
        // The metaindex of a range that lakeFS wrote.
        let block = b"\x00\x12\x04rocksdb.properties\xbc\x02\x82\x06\x00\x00\x00\x00\x01\x00\x00\x00";
        assert_eq!(super::masked(block, 0).to_le_bytes(), [0xc5, 0x63, 0x94, 0xb8]);
    }
}
