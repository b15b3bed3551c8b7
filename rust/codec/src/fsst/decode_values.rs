//! Decodes the codes of many adjacent values at once.
//!
//! A branch at each value's end would be mispredicted. So the codes are decoded as one value, places where codes' bytes start are noted,
//! and the ends of the values are looked up among these places.

use super::decode::{next_piece, Decoder, FEW, PIECE, WITHIN};
use super::decode_run::{places_of, RUN};
use crate::error::{CodecError, Result};

/// Few codes need few places: to clear all of them costs more than to decode a few values.
const SHORT: usize = 256;

/// Codes beyond a piece that may be decoded with it, and the place where the last one ends.
const BEYOND: usize = 9;

/// The ends of values among codes.
struct Bounds<I> {
    /// The next end.
    next: Option<usize>,
    rest: I,
    /// Whether one was before the one before it.
    falls: bool,
}

impl<I: Iterator<Item = usize>> Bounds<I> {
    /// The next end up to `limit`.
    #[inline(always)]
    fn up_to(&mut self, limit: usize) -> Option<usize> {
        let found = self.next.filter(|at| *at <= limit)?;
        self.next = self.rest.next();
        self.falls |= self.next.is_some_and(|next| next < found);
        Some(found)
    }

    /// Refuses ends beyond all codes, and such that fall.
    fn finish(&self, len: usize) -> Result<()> {
        if self.falls {
            return Err(CodecError::corrupt(
                "expected values to end in order, found one to end before the one before it",
            ));
        }
        self.next.map_or(Ok(()), |at| {
            Err(CodecError::corrupt(format!(
                "expected values to end within {len} codes, found one to end at {at}"
            )))
        })
    }
}

impl Decoder {
    /// Appends the bytes of values that lie one after the other in `codes`. `bounds` are the ends of the values in `codes`; `end` is called
    /// with the end of each in `out`. Returns whether all bytes are those of symbols: there was no escape.
    pub fn decode_values(
        &self,
        codes: &[u8],
        bounds: impl Iterator<Item = usize>,
        out: &mut Vec<u8>,
        mut end: impl FnMut(usize),
    ) -> Result<bool> {
        let start = out.len();
        let mut rest = bounds;
        let bounds = Bounds {
            next: rest.next(),
            rest,
            falls: false,
        };
        let decoded = if codes.len() <= SHORT {
            self.decode_pieces(codes, bounds, out, &mut end, &mut [0; places_of(SHORT)])
        } else {
            self.decode_pieces(codes, bounds, out, &mut end, &mut [0; places_of(RUN)])
        };
        if decoded.is_err() {
            out.truncate(start);
        }
        decoded
    }

    #[inline(always)]
    fn decode_pieces(
        &self,
        codes: &[u8],
        mut bounds: Bounds<impl Iterator<Item = usize>>,
        out: &mut Vec<u8>,
        end: &mut impl FnMut(usize),
        places: &mut [u16],
    ) -> Result<bool> {
        if !self.is_encoded() {
            let start = out.len();
            out.extend_from_slice(codes);
            while let Some(at) = bounds.up_to(codes.len()) {
                end(start + at);
            }
            return bounds.finish(codes.len()).map(|()| false);
        }
        let (mut done, mut piece, mut escapes) = (0, FEW, false);
        loop {
            let start = out.len();
            let rest = codes.get(done..).unwrap_or_default();
            let run = self.decode_run(rest, out, places);
            // A bound before this run: falling offsets.
            while let Some(at) = bounds.up_to(done + run) {
                let place = at.checked_sub(done).and_then(|at| self.place_in_run(rest, places, at));
                end(start + place.ok_or_else(|| misplaced(at))?);
            }
            done += run;
            if done >= codes.len() {
                break;
            }
            if run < RUN {
                piece = next_piece(piece, run);
                let read = if piece <= FEW {
                    self.decode_any(codes, done, piece, &mut bounds, out, end, &mut [0; FEW + BEYOND])?
                } else {
                    self.decode_any(codes, done, piece, &mut bounds, out, end, &mut [0; PIECE + BEYOND])?
                };
                escapes |= codes
                    .get(done..done + read)
                    .unwrap_or_default()
                    .contains(&super::ESCAPE);
                done += read;
            }
        }
        bounds.finish(codes.len()).map(|()| !escapes)
    }

    /// Decodes about `piece` of the codes from `done` on, whatever they are.
    #[allow(clippy::too_many_arguments)] // The parts of one step, which nothing else groups.
    fn decode_any(
        &self,
        codes: &[u8],
        done: usize,
        piece: usize,
        bounds: &mut Bounds<impl Iterator<Item = usize>>,
        out: &mut Vec<u8>,
        end: &mut impl FnMut(usize),
        places: &mut [u32],
    ) -> Result<usize> {
        let start = out.len();
        let rest = codes.get(done..).unwrap_or_default();
        let read = self.decode_piece::<true>(rest, piece, out, places)?;
        // A bound after an escape has no place.
        while let Some(at) = bounds.up_to(done + read) {
            let place = at.checked_sub(done).and_then(|at| places.get(at)).copied();
            let place = place.filter(|place| *place != WITHIN).ok_or_else(|| misplaced(at))?;
            end(start + place as usize);
        }
        Ok(read)
    }
}

fn misplaced(at: usize) -> CodecError {
    CodecError::corrupt(format!(
        "expected values to end in order and not after an fsst escape, found one to end at code {at}"
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
            (codes.as_slice(), vec![1, 0, all]),
            (&codes[..=escape], vec![escape + 1]),
        ] {
            let mut out = vec![1];
            assert!(decoder
                .decode_values(codes, bounds.into_iter(), &mut out, |_| {})
                .is_err());
            assert_eq!(out, [1]);
        }
        let long = vec![0; 3 * RUN];
        let falling = [2 * RUN, 10].into_iter();
        assert!(decoder.decode_values(&long, falling, &mut Vec::new(), |_| {}).is_err());
    }
}
