//! Codes of many values that lie one after the other, at a time.
//!
//! Where a value ends, no one can predict. So the codes are decoded as if they were one value's, where each code's bytes start is
//! noted, and the ends of values are looked up there.
#![allow(unsafe_code)]

use super::decode::{has_escape, Decoder, NO_SYMBOL};
use super::{ESCAPE, MAX_SYMBOL};
use crate::error::{CodecError, Result};

/// How many codes are decoded at a time.
const PIECE: usize = 4096;

/// The place of a byte that an escape stands before: no value ends there.
const WITHIN: u32 = u32::MAX;

impl Decoder {
    /// Appends the bytes of values that lie one after the other in `codes`. `bounds` are where each value ends in `codes`; `end` is told
    /// where it ends in `out`.
    pub fn decode_values(
        &self,
        codes: &[u8],
        bounds: impl Iterator<Item = usize>,
        out: &mut Vec<u8>,
        mut end: impl FnMut(usize),
    ) -> Result<()> {
        let start = out.len();
        let decoded = self.decode_pieces(codes, bounds, out, &mut end);
        if decoded.is_err() {
            out.truncate(start);
        }
        decoded
    }

    fn decode_pieces(
        &self,
        codes: &[u8],
        mut bounds: impl Iterator<Item = usize>,
        out: &mut Vec<u8>,
        end: &mut impl FnMut(usize),
    ) -> Result<()> {
        let mut bound = bounds.next();
        if !self.is_encoded() {
            let start = out.len();
            out.extend_from_slice(codes);
            while let Some(at) = bound.filter(|at| *at <= codes.len()) {
                end(start + at);
                bound = bounds.next();
            }
            return bound.map_or(Ok(()), |at| Err(beyond(at, codes.len())));
        }
        let mut places = [0_u32; PIECE + 9];
        let mut done = 0;
        loop {
            let start = out.len();
            let piece = self.decode_noting(codes.get(done..).unwrap_or_default(), out, &mut places)?;
            // A bound before the piece has no place in it, nor has one of which `places` says so.
            while let Some(at) = bound.filter(|at| *at <= done + piece) {
                let place = at.checked_sub(done).and_then(|at| places.get(at)).copied();
                let place = place.filter(|place| *place != WITHIN).ok_or_else(|| {
                    CodecError::corrupt(format!(
                        "expected values to end in order and not after an fsst escape, found one to end at code {at}"
                    ))
                })?;
                end(start + place as usize);
                bound = bounds.next();
            }
            done += piece;
            if done >= codes.len() {
                return bound.map_or(Ok(()), |at| Err(beyond(at, codes.len())));
            }
        }
    }

    /// Appends what up to [`PIECE`] codes and some stand for, and notes where what each code stands for starts, and where the last ends.
    /// Returns how many codes these are.
    fn decode_noting(&self, codes: &[u8], out: &mut Vec<u8>, places: &mut [u32; PIECE + 9]) -> Result<usize> {
        let piece = codes.len().min(PIECE);
        let (start, reserved) = (out.len(), (piece + 8) * usize::from(NO_SYMBOL) + MAX_SYMBOL);
        out.reserve(reserved);
        let spare = out.as_mut_ptr().wrapping_add(start);
        let (mut read, mut written, mut lengths) = (0, 0, 0);
        // Writes the eight bytes of a symbol, of which as many as it has count.
        let mut put = |code: u8, written: &mut usize| {
            let (symbol, length) = self.symbol(code);
            debug_assert!(*written + MAX_SYMBOL <= reserved);
            // SAFETY: `reserved` bytes are reserved from `spare` on. `put` runs at most `piece + 8` times, since each run consumes a
            // code, codes are consumed while less than `piece` are, and at most 8 at a time. Each run moves `written` on by a
            // length of at most `NO_SYMBOL`, so that it is at most `reserved - MAX_SYMBOL` before each write of `MAX_SYMBOL` bytes.
            unsafe { spare.add(*written).cast::<[u8; MAX_SYMBOL]>().write(symbol) };
            *written += usize::from(length);
            lengths |= length;
        };
        #[allow(clippy::cast_possible_truncation)] // A piece holds less than 2^17 bytes.
        while read < piece {
            let rest = codes.get(read..).unwrap_or_default();
            let noted = places.get_mut(read..).unwrap_or_default();
            if let (Some(eight), Some(noted)) = (
                rest.first_chunk::<8>().filter(|eight| !has_escape(**eight)),
                noted.first_chunk_mut::<8>(),
            ) {
                for (code, place) in eight.iter().zip(noted) {
                    *place = written as u32;
                    put(*code, &mut written);
                }
                read += 8;
                continue;
            }
            match (rest, noted) {
                ([ESCAPE, literal, ..], [first, second, ..]) => {
                    (*first, *second) = (written as u32, WITHIN);
                    debug_assert!(written < reserved);
                    // SAFETY: as above; an escape consumes two codes and moves `written` on by 1.
                    unsafe { spare.add(written).write(*literal) };
                    written += 1;
                    read += 2;
                }
                ([ESCAPE], _) => {
                    return Err(CodecError::corrupt(
                        "expected a byte after an fsst escape, found the end of the values",
                    ));
                }
                ([code, ..], [first, ..]) => {
                    *first = written as u32;
                    put(*code, &mut written);
                    read += 1;
                }
                _ => break,
            }
        }
        if lengths & NO_SYMBOL > 0 {
            return Err(CodecError::corrupt(
                "expected codes of the fsst symbol table, found one that stands for nothing",
            ));
        }
        #[allow(clippy::cast_possible_truncation)] // As above.
        if let Some(last) = places.get_mut(read) {
            *last = written as u32;
        }
        // SAFETY: each write above starts where the one before it ends, or earlier, as all lengths are at most `MAX_SYMBOL` (checked by
        // `new`; `NO_SYMBOL` has returned): the first `written` bytes are initialised, and less than `reserved`.
        unsafe { out.set_len(start + written) };
        Ok(read)
    }
}

fn beyond(at: usize, len: usize) -> CodecError {
    CodecError::corrupt(format!(
        "expected values to end within {len} codes, found one to end at {at}"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::Encoder;
    use super::*;

    #[test]
    fn test_values_come_back_as_one_by_one() {
        let values: Vec<Vec<u8>> = (0..3000_usize)
            .map(|i| format!("https://example.org/{}/\u{e9}{}", i * 7919 % 1000, "x".repeat(i % 40)).into_bytes())
            .map(|value| if value.len() % 3 == 0 { Vec::new() } else { value })
            .collect();
        let trained: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        for samples in [trained.as_slice(), &trained[..3], &[b"abcabc".as_slice()]] {
            let encoder = Encoder::train(samples);
            let decoder = Decoder::new(&encoder.symbol_table()).unwrap();
            let (mut codes, mut bounds) = (Vec::new(), Vec::new());
            for value in &values {
                encoder.encode(value, &mut codes);
                bounds.push(codes.len());
            }
            let (mut out, mut ends) = (b"<".to_vec(), Vec::new());
            decoder
                .decode_values(&codes, bounds.iter().copied(), &mut out, |end| ends.push(end))
                .unwrap();
            assert_eq!(out[1..], values.concat());
            let mut expected = 1;
            for (value, end) in values.iter().zip(ends) {
                expected += value.len();
                assert_eq!(end, expected);
            }
        }
    }

    #[test]
    fn test_ends_that_cannot_be_are_refused() {
        let encoder = Encoder::train(&[b"abcabcabc"]);
        let decoder = Decoder::new(&encoder.symbol_table()).unwrap();
        let mut codes = Vec::new();
        encoder.encode(b"abc!abc", &mut codes);
        let escape = codes.iter().position(|code| *code == ESCAPE).unwrap();
        let all = codes.len();
        for (codes, bounds) in [
            (codes.as_slice(), vec![escape + 1, all]),
            (codes.as_slice(), vec![all + 1]),
            (codes.as_slice(), vec![all, usize::MAX]),
            (&codes[..=escape], vec![escape + 1]),
        ] {
            let mut out = vec![1];
            assert!(decoder
                .decode_values(codes, bounds.into_iter(), &mut out, |_| {})
                .is_err());
            assert_eq!(out, [1]);
        }
        let long = vec![0; 3 * PIECE];
        let falling = [2 * PIECE, 10].into_iter();
        assert!(decoder.decode_values(&long, falling, &mut Vec::new(), |_| {}).is_err());
    }
}
