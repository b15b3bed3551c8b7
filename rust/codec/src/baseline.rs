//! Scalar baselines: each kernel in the plainest way, which the fast ones must equal and the benches compare with.

use crate::bitpack::BLOCK;

/// The values of a packed block of `bits` wide words: for each its index, and its row and lane.
fn places(bits: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    const ORDER: [usize; 8] = [0, 4, 2, 6, 1, 5, 3, 7];
    let lanes = BLOCK / bits;
    (0..bits).flat_map(move |row| {
        let start = ORDER.get(row / 8).copied().unwrap_or_default() * 16 + row % 8 * 128;
        (0..lanes).map(move |lane| (start + lane, row, lane))
    })
}

fn word(bytes: &[u8], size: usize, index: usize) -> u64 {
    let bytes = bytes.get(index * size..(index + 1) * size).unwrap_or_default();
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn or_word(bytes: &mut [u8], size: usize, index: usize, word: u64) {
    let bytes = bytes.get_mut(index * size..(index + 1) * size).unwrap_or_default();
    bytes
        .iter_mut()
        .zip(word.to_le_bytes())
        .for_each(|(to, from)| *to |= from);
}

/// A block of `bits` wide values from `width` bits each, value by value.
pub fn unpack(bits: usize, width: usize, packed: &[u8]) -> Vec<u8> {
    let (size, lanes) = (bits / 8, BLOCK / bits);
    let mut out = vec![0; BLOCK * size];
    for (index, row, lane) in places(bits).filter(|_| width > 0) {
        let (at, shift) = (row * width / bits, row * width % bits);
        let mut value = word(packed, size, at * lanes + lane) >> shift;
        if shift + width > bits {
            value |= word(packed, size, (at + 1) * lanes + lane) << (bits - shift);
        }
        or_word(&mut out, size, index, value & (u64::MAX >> (64 - width)));
    }
    out
}

/// The inverse of [`unpack`].
pub fn pack(bits: usize, width: usize, values: &[u8]) -> Vec<u8> {
    let (size, lanes) = (bits / 8, BLOCK / bits);
    let mut packed = vec![0; BLOCK * width / 8];
    for (index, row, lane) in places(bits).filter(|_| width > 0) {
        let (at, shift) = (row * width / bits, row * width % bits);
        let value = word(values, size, index) & (u64::MAX >> (64 - width));
        or_word(&mut packed, size, at * lanes + lane, value << shift);
        if shift + width > bits {
            or_word(&mut packed, size, (at + 1) * lanes + lane, value >> (bits - shift));
        }
    }
    packed
}

/// FSST codes to bytes, symbol by symbol. `None` if a code has no symbol.
pub fn decode_fsst(symbols: &[&[u8]], codes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut codes = codes.iter();
    while let Some(code) = codes.next() {
        match code {
            255 => out.push(*codes.next()?),
            code => out.extend_from_slice(symbols.get(usize::from(*code))?),
        }
    }
    Some(out)
}

/// Runs to values, value by value.
pub fn decode_runs(width: usize, values: &[u8], lengths: &[u8], num_values: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for (value, length) in values.chunks(width).zip(lengths) {
        for _ in 0..*length {
            if out.len() < num_values * width {
                out.extend_from_slice(value);
            }
        }
    }
    out
}

/// Byte streams to values, byte by byte.
pub fn join_streams(width: usize, bytes: &[u8]) -> Vec<u8> {
    let count = bytes.len() / width;
    let from = |at: usize| bytes.get(at % width * count + at / width).copied().unwrap_or_default();
    (0..bytes.len()).map(from).collect()
}

/// Values to byte streams, byte by byte.
pub fn split_streams(width: usize, values: &[u8]) -> Vec<u8> {
    let count = values.len() / width;
    let from = |at: usize| values.get(at % count * width + at / count).copied().unwrap_or_default();
    (0..values.len()).map(from).collect()
}

/// A bit stream to values of eight bytes, one bit at a time.
pub fn decode_bit_stream(width: usize, signed: bool, packed: &[u8], first_bit: usize, num_values: usize) -> Vec<u64> {
    let bit = |at: usize| packed.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
    let value = |index: usize| {
        let start = first_bit + index * width;
        let value = (0..width).fold(0, |value, at| value | u64::from(bit(start + at)) << at);
        let is_negative = signed && bit(start + width - 1);
        if is_negative && width < 64 {
            value | u64::MAX << width
        } else {
            value
        }
    };
    (0..num_values).map(value).collect()
}
