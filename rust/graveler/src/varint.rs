//! Varints: integers of one to ten bytes, seven bits per byte, lowest first; unsigned, and signed in zigzag encoding.

/// Appends an unsigned varint.
pub(crate) fn put_uvarint(buffer: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        buffer.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    buffer.push((value & 0x7f) as u8);
}

/// The number of bytes of an unsigned varint.
pub(crate) fn uvarint_len(value: usize) -> usize {
    let bits = usize::BITS - value.leading_zeros();
    (bits.max(1).div_ceil(7)) as usize
}

/// Decodes the unsigned varint at the start of `bytes`, and its length. `None` if it does not end, or does not fit 64 bits.
#[inline]
pub(crate) fn uvarint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        let part = u64::from(byte & 0x7f);
        if at == 9 && part > 1 {
            return None;
        }
        value |= part << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

/// Appends a length as a zigzag varint: twice the value.
pub(crate) fn put_length(buffer: &mut Vec<u8>, length: usize) {
    put_uvarint(buffer, (length as u64) << 1);
}

/// Decodes the zigzag length at the start of `bytes`; returns the bytes after it, too. `None` if there is none, or it is negative.
#[inline]
pub(crate) fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (folded, used) = uvarint(bytes)?;
    if folded & 1 == 1 {
        return None;
    }
    Some((usize::try_from(folded >> 1).ok()?, bytes.get(used..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_values_come_back_and_take_the_bytes_that_were_foretold() {
        for shift in 0..64 {
            for value in [(1u64 << shift) - 1, 1 << shift, (1 << shift) + 1] {
                let mut bytes = Vec::new();
                put_uvarint(&mut bytes, value);
                assert_eq!(bytes.len(), uvarint_len(value as usize), "{value}");
                assert_eq!(uvarint(&bytes), Some((value, bytes.len())));
                (0..bytes.len()).for_each(|end| assert_eq!(uvarint(&bytes[..end]), None));
            }
        }
        assert_eq!(uvarint(&[0xff; 10]), None);
    }

    #[test]
    fn test_a_negative_length_is_none() {
        assert_eq!(length(&[0x40, 7]), Some((32, [7].as_slice())));
        assert_eq!(length(&[0x80, 0x01]), Some((64, [].as_slice())));
        assert_eq!(length(&[0x41]), None);
    }
}
