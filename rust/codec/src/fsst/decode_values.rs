//! Decodes the codes of many adjacent values at once.
//!
//! A branch at each value's end would be mispredicted. So the codes are decoded as one value, the place where each code's bytes start is
//! noted, and the ends of the values are looked up among these places.

use super::decode::{Decoder, WITHIN};
use crate::error::{CodecError, Result};

/// How many codes are decoded at a time.
const PIECE: usize = 4096;

/// Few codes need few places: to clear all of them costs more than to decode a few values.
const SHORT: usize = 256;

/// Codes beyond a piece that may be decoded with it, and the place where the last one ends.
const BEYOND: usize = 9;

impl Decoder {
    /// Appends the bytes of values that lie one after the other in `codes`. `bounds` are the ends of the values in `codes`; `end` is called
    /// with the end of each in `out`.
    pub fn decode_values(
        &self,
        codes: &[u8],
        bounds: impl Iterator<Item = usize>,
        out: &mut Vec<u8>,
        mut end: impl FnMut(usize),
    ) -> Result<()> {
        let start = out.len();
        let decoded = if codes.len() <= SHORT {
            self.decode_pieces(codes, bounds, out, &mut end, &mut [0; SHORT + BEYOND])
        } else {
            self.decode_pieces(codes, bounds, out, &mut end, &mut [0; PIECE + BEYOND])
        };
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
        places: &mut [u32],
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
        let piece = places.len().saturating_sub(BEYOND);
        let mut done = 0;
        loop {
            let start = out.len();
            let rest = codes.get(done..).unwrap_or_default();
            let read = self.decode_piece::<true>(rest, piece, out, places)?;
            // A bound before this piece (falling offsets) or after an escape has no place.
            while let Some(at) = bound.filter(|at| *at <= done + read) {
                let place = at.checked_sub(done).and_then(|at| places.get(at)).copied();
                let place = place.filter(|place| *place != WITHIN).ok_or_else(|| {
                    CodecError::corrupt(format!(
                        "expected values to end in order and not after an fsst escape, found one to end at code {at}"
                    ))
                })?;
                end(start + place as usize);
                bound = bounds.next();
            }
            done += read;
            if done >= codes.len() {
                return bound.map_or(Ok(()), |at| Err(beyond(at, codes.len())));
            }
        }
    }
}

fn beyond(at: usize, len: usize) -> CodecError {
    CodecError::corrupt(format!(
        "expected values to end within {len} codes, found one to end at {at}"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::{Encoder, ESCAPE};
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
            // A few at a time.
            for number in (0..values.len()).step_by(97) {
                let start = number.checked_sub(1).map_or(0, |before| bounds[before]);
                let (mut out, mut ends) = (Vec::new(), Vec::new());
                decoder
                    .decode_values(
                        &codes[start..bounds[number]],
                        [bounds[number] - start].into_iter(),
                        &mut out,
                        |end| {
                            ends.push(end);
                        },
                    )
                    .unwrap();
                assert_eq!((&out, ends), (&values[number], vec![values[number].len()]));
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
