//! Byte stream split: the first bytes of all values, then the second bytes, and so on.
//!
//! ```text
//! values    a0 a1 a2 a3  b0 b1 b2 b3       stored    a0 b0  a1 b1  a2 b2  a3 b3
//! ```
//!
//! It saves nothing itself: what compresses the bytes afterwards finds those that are alike side by side.

use crate::bitpack::Word;
use crate::error::{CodecError, Result};

/// Appends the streams of values of `width_bytes` bytes. What is left after the last whole value is left out.
pub fn split(width_bytes: usize, values: &[u8], out: &mut Vec<u8>) {
    match width_bytes {
        0 => {}
        2 => split_words::<u16>(values, out),
        4 => split_words::<u32>(values, out),
        8 => split_words::<u64>(values, out),
        _ => {
            for byte in 0..width_bytes {
                let values = values.chunks_exact(width_bytes);
                out.extend(values.map(|value| value.get(byte).copied().unwrap_or_default()));
            }
        }
    }
}

fn split_words<W: Word>(values: &[u8], out: &mut Vec<u8>) {
    let words = W::words(values);
    for byte in 0..W::BITS / 8 {
        out.extend(
            words
                .iter()
                .map(|word| (W::from_bytes(*word) >> (8 * byte)).lowest_byte()),
        );
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
    match width_bytes {
        2 => join_words::<u16, 2>(bytes, values),
        4 => join_words::<u32, 4>(bytes, values),
        8 => join_words::<u64, 8>(bytes, values),
        _ => {
            for (byte, stream) in bytes.chunks_exact((bytes.len() / width_bytes).max(1)).enumerate() {
                for (value, from) in values.chunks_exact_mut(width_bytes).zip(stream) {
                    if let Some(to) = value.get_mut(byte) {
                        *to = *from;
                    }
                }
            }
        }
    }
    Ok(())
}

fn join_words<W: Word, const WIDTH: usize>(bytes: &[u8], values: &mut [u8]) {
    const STEP: usize = 16;
    let count = bytes.len() / WIDTH;
    let mut streams: [&[u8]; WIDTH] = [&[]; WIDTH];
    for (stream, bytes) in streams.iter_mut().zip(bytes.chunks_exact(count.max(1))) {
        *stream = bytes;
    }
    let (steps, rest) = W::words_mut(values).as_chunks_mut::<STEP>();
    for (step, values) in steps.iter_mut().enumerate() {
        let mut words = [W::default(); STEP];
        for (byte, stream) in streams.iter().enumerate() {
            let from = stream.get(step * STEP..).and_then(|rest| rest.first_chunk::<STEP>());
            for (word, byte_of) in words.iter_mut().zip(from.unwrap_or(&[0; STEP])) {
                *word = *word | W::from_byte(*byte_of) << (8 * byte);
            }
        }
        values
            .iter_mut()
            .zip(words)
            .for_each(|(value, word)| *value = word.to_bytes());
    }
    for (index, value) in (steps.len() * STEP..).zip(rest) {
        let byte_of = |stream: &&[u8]| W::from_byte(stream.get(index).copied().unwrap_or_default());
        let bytes = streams.iter().enumerate();
        *value = bytes
            .fold(W::default(), |word, (byte, stream)| {
                word | byte_of(stream) << (8 * byte)
            })
            .to_bytes();
    }
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
