//! Byte stream split: the first bytes of all values, then the second bytes, and so on.
//!
//! ```text
//! values    a0 a1 a2 a3  b0 b1 b2 b3       stored    a0 b0  a1 b1  a2 b2  a3 b3
//! ```
//!
//! It saves nothing itself: what compresses the bytes afterwards finds those that are alike side by side.

use crate::error::{CodecError, Result};

/// Appends the streams of values of `width_bytes` bytes. What is left after the last whole value is left out.
pub fn split(width_bytes: usize, values: &[u8], out: &mut Vec<u8>) {
    let Some(count) = values.len().checked_div(width_bytes) else {
        return;
    };
    out.reserve(count.saturating_mul(width_bytes));
    for byte in 0..width_bytes {
        let values = values.chunks_exact(width_bytes);
        out.extend(values.map(|value| value.get(byte).copied().unwrap_or_default()));
    }
}

/// Appends the values of streams that [`split`] made.
pub fn join(width_bytes: usize, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if width_bytes == 0 || !bytes.len().is_multiple_of(width_bytes) {
        return Err(CodecError::corrupt(format!(
            "expected byte streams of values of {width_bytes} bytes, found {} bytes",
            bytes.len()
        )));
    }
    let start = out.len();
    out.resize(start.saturating_add(bytes.len()), 0);
    let values = out.get_mut(start..).unwrap_or_default();
    let count = bytes.len() / width_bytes;
    if count > 0 {
        for (byte, stream) in bytes.chunks_exact(count).enumerate() {
            for (value, from) in values.chunks_exact_mut(width_bytes).zip(stream) {
                if let Some(to) = value.get_mut(byte) {
                    *to = *from;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_streams_come_back() {
        for width in [1, 2, 4, 8, 3] {
            for count in [0_usize, 1, 5, 1024] {
                let values: Vec<u8> = (0..count * width).map(|i| (i * 7) as u8).collect();
                let mut streams = Vec::new();
                split(width, &values, &mut streams);
                assert_eq!(
                    streams.get(1),
                    if count > 1 { values.get(width) } else { values.get(1) }
                );
                let mut out = vec![5];
                join(width, &streams, &mut out).unwrap();
                assert_eq!(out[1..], values);
            }
        }
        assert!(join(4, &[0; 7], &mut Vec::new()).is_err());
        assert!(join(0, &[], &mut Vec::new()).is_err());
    }
}
