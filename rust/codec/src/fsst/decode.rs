//! FSST codes to strings.
//!
//! All eight bytes of a symbol are written, and the next symbol overwrites those beyond its length: a store of a register instead of a
//! copy of unpredictable length.
#![allow(unsafe_code)]

use super::decode_run::{Known, RUN};
use super::{ESCAPE, MAGIC, MAX_SYMBOL};
use crate::error::{CodecError, Result};

/// The length of a code without a symbol: a bit that no symbol's length has set.
const NO_SYMBOL: u8 = 16;

/// The most codes that are decoded at a time where escapes are.
pub(super) const PIECE: usize = 256;

/// The fewest.
pub(super) const FEW: usize = 8;

/// The place of a literal after an escape: no value ends before it.
pub(super) const WITHIN: u32 = u32::MAX;

/// Turns the codes of values back into bytes.
#[derive(Clone, Debug)]
pub struct Decoder {
    symbols: [[u8; MAX_SYMBOL]; 256],
    /// Lengths of the symbols; [`NO_SYMBOL`] where there is none.
    lengths: [u8; 256],
    /// Whether values are codes at all.
    is_encoded: bool,
    /// Which codes have symbols.
    known: Known,
    is_ascii: bool,
}

impl Decoder {
    /// A decoder from the symbol table of a page.
    pub fn new(symbol_table: &[u8]) -> Result<Decoder> {
        let corrupt = |found: &str| {
            Err(CodecError::corrupt(format!(
                "expected an fsst symbol table, found {} bytes {found}",
                symbol_table.len()
            )))
        };
        let Some(([num_symbols, _, _, is_encoded, magic @ ..], rest)) = symbol_table.split_first_chunk::<8>() else {
            return corrupt("without a header");
        };
        if *magic != MAGIC {
            return corrupt("without its magic number");
        }
        let mut decoder = Decoder {
            symbols: [[0; MAX_SYMBOL]; 256],
            lengths: [NO_SYMBOL; 256],
            is_encoded: is_encoded & 1 == 1,
            known: Known::new(0),
            is_ascii: false,
        };
        if !decoder.is_encoded {
            return Ok(decoder);
        }
        let count = usize::from(*num_symbols);
        let Some((symbols, lengths)) = rest.split_at_checked(count * MAX_SYMBOL) else {
            return corrupt("that end before the symbols");
        };
        let Some(lengths) = lengths.get(..count) else {
            return corrupt("that end before the lengths of the symbols");
        };
        if lengths.iter().any(|length| !(1..=8).contains(length)) {
            return corrupt("with a symbol that is not 1 to 8 bytes long");
        }
        let symbols = symbols.as_chunks().0;
        decoder
            .symbols
            .iter_mut()
            .zip(symbols)
            .for_each(|(to, from)| *to = *from);
        decoder
            .lengths
            .iter_mut()
            .zip(lengths)
            .for_each(|(to, from)| *to = *from);
        decoder.known = Known::new(*num_symbols);
        let all = symbols.iter().zip(lengths);
        decoder.is_ascii = all
            .map(|(symbol, length)| symbol.get(..usize::from(*length)).unwrap_or_default())
            .all(<[u8]>::is_ascii);
        Ok(decoder)
    }

    /// Whether values are codes at all.
    pub(super) fn is_encoded(&self) -> bool {
        self.is_encoded
    }

    /// Whether all symbols are ASCII. Of literals after escapes nothing is known.
    pub fn is_ascii(&self) -> bool {
        self.is_encoded && self.is_ascii
    }

    /// Whether all of eight codes have symbols: none is an escape.
    #[inline(always)]
    pub(super) fn knows(&self, codes: [u8; 8]) -> bool {
        self.known.all(codes)
    }

    /// What a code stands for: eight bytes, and how many of them count.
    #[inline(always)]
    pub(super) fn symbol(&self, code: u8) -> ([u8; MAX_SYMBOL], u8) {
        #[allow(clippy::indexing_slicing)] // A byte is below 256.
        (self.symbols[usize::from(code)], self.lengths[usize::from(code)])
    }

    /// Appends the bytes of one value, or of several adjacent ones.
    pub fn decode(&self, compressed: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if !self.is_encoded {
            out.extend_from_slice(compressed);
            return Ok(());
        }
        let start = out.len();
        let (mut codes, mut piece) = (compressed, FEW);
        while !codes.is_empty() {
            let run = self.decode_run(codes, out, &mut []);
            codes = codes.get(run..).unwrap_or_default();
            if run == RUN {
                continue;
            }
            piece = next_piece(piece, run);
            match self.decode_piece::<false>(codes, piece, out, &mut []) {
                Ok(read) => codes = codes.get(read..).unwrap_or_default(),
                Err(error) => {
                    out.truncate(start);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Decodes up to `piece` codes and at most 8 more; returns how many it decoded. With `NOTES`, `places` becomes where the bytes of each
    /// code start ([`WITHIN`] for a literal after an escape), and after those where the last ones end.
    #[inline(always)]
    pub(super) fn decode_piece<const NOTES: bool>(
        &self,
        codes: &[u8],
        piece: usize,
        out: &mut Vec<u8>,
        places: &mut [u32],
    ) -> Result<usize> {
        let piece = codes.len().min(piece);
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
        #[allow(clippy::cast_possible_truncation)] // A piece stands for less than 2^17 bytes.
        let place = |written: usize| written as u32;
        let note = |places: &mut [u32], at: usize, place: u32| {
            if let Some(noted) = places.get_mut(at).filter(|_| NOTES) {
                *noted = place;
            }
        };
        while read < piece {
            let rest = codes.get(read..).unwrap_or_default();
            if let Some(eight) = rest.first_chunk::<8>() {
                let plain = before_escape(*eight);
                if plain == 8 {
                    let mut unseen = [0; 8];
                    let noted = places.get_mut(read..).filter(|_| NOTES);
                    let noted = noted.and_then(|p| p.first_chunk_mut()).unwrap_or(&mut unseen);
                    for (code, noted) in eight.iter().zip(noted) {
                        *noted = place(written);
                        put(*code, &mut written);
                    }
                    read += 8;
                    continue;
                }
                // Those before the escape, which comes first in the next round.
                for code in eight.iter().take(plain) {
                    note(places, read, place(written));
                    put(*code, &mut written);
                    read += 1;
                }
                if plain > 0 {
                    continue;
                }
            }
            match rest {
                [ESCAPE, literal, ..] => {
                    note(places, read, place(written));
                    note(places, read + 1, WITHIN);
                    debug_assert!(written < reserved);
                    // SAFETY: as above; an escape consumes two codes and moves `written` on by 1.
                    unsafe { spare.add(written).write(*literal) };
                    written += 1;
                    read += 2;
                }
                [ESCAPE] => {
                    return Err(CodecError::corrupt(
                        "expected a byte after an fsst escape, found the end of the values",
                    ));
                }
                [code, ..] => {
                    note(places, read, place(written));
                    put(*code, &mut written);
                    read += 1;
                }
                [] => break,
            }
        }
        if lengths & NO_SYMBOL > 0 {
            return Err(CodecError::corrupt(
                "expected codes of the fsst symbol table, found one that stands for nothing",
            ));
        }
        // SAFETY: each write above starts where the one before it ends, or earlier, as all lengths are at most `MAX_SYMBOL` (checked by
        // `new`; `NO_SYMBOL` has returned): the first `written` bytes are initialised, and less than `reserved`.
        unsafe { out.set_len(start + written) };
        note(places, read, place(written));
        Ok(read)
    }
}

/// How many codes are decoded where a run of `run` codes ended: more of them where escapes are dense.
pub(super) fn next_piece(piece: usize, run: usize) -> usize {
    if run < 4 * FEW {
        (2 * piece).min(PIECE)
    } else {
        FEW
    }
}

/// How many of eight codes come before the first escape.
#[inline(always)]
fn before_escape(codes: [u8; 8]) -> usize {
    // A byte of 0 is the lowest one to borrow from the bit above it.
    let inverted = !u64::from_le_bytes(codes);
    let found = inverted.wrapping_sub(0x0101_0101_0101_0101) & !inverted & 0x8080_8080_8080_8080;
    found.trailing_zeros() as usize / 8
}

#[cfg(test)]
mod tests {
    use super::super::SYMBOL_TABLE_SIZE;
    use super::*;

    fn table(is_encoded: bool) -> Vec<u8> {
        let mut table = vec![2, 0, 0, u8::from(is_encoded)];
        table.extend(MAGIC);
        table.extend(b"abcdefghxy\0\0\0\0\0\0");
        table.extend([8, 2]);
        table.resize(SYMBOL_TABLE_SIZE, 0);
        table
    }

    #[test]
    fn test_the_first_escape_is_found_wherever_it_is() {
        for others in [0, 1, 127, 128, 254] {
            assert_eq!(before_escape([others; 8]), 8);
            for first in 0..8 {
                for more in first..8 {
                    let mut codes = [others; 8];
                    (codes[first], codes[more]) = (ESCAPE, ESCAPE);
                    assert_eq!(before_escape(codes), first);
                }
            }
        }
    }

    #[test]
    fn test_escapes_at_any_distance_come_back() {
        let decoder = Decoder::new(&table(true)).unwrap();
        for apart in 0..20 {
            let (mut codes, mut expected) = (Vec::new(), Vec::new());
            for turn in 0..200_u8 {
                codes.extend(vec![1; apart]);
                codes.extend([ESCAPE, turn]);
                expected.extend(b"xy".repeat(apart));
                expected.push(turn);
            }
            let mut out = Vec::new();
            decoder.decode(&codes, &mut out).unwrap();
            assert_eq!(out, expected);
            let (mut noted, mut ends) = (Vec::new(), Vec::new());
            let bounds = (1..=200).map(|turn| turn * (apart + 2));
            decoder
                .decode_values(&codes, bounds, &mut noted, |end| ends.push(end))
                .unwrap();
            assert_eq!(noted, expected);
            let expected: Vec<usize> = (1..=200).map(|turn| turn * (2 * apart + 1)).collect();
            assert_eq!(ends, expected);
        }
    }

    #[test]
    fn test_codes_escapes_and_plain_values_are_read() {
        let mut out = b"<".to_vec();
        Decoder::new(&table(true))
            .unwrap()
            .decode(&[0, 1, 255, 9, 1, 255, 255], &mut out)
            .unwrap();
        assert_eq!(out, b"<abcdefghxy\x09xy\xff");
        let mut out = Vec::new();
        Decoder::new(&table(false))
            .unwrap()
            .decode(&[0, 255], &mut out)
            .unwrap();
        assert_eq!(out, [0, 255]);
    }

    #[test]
    fn test_lies_are_refused() {
        let table = table(true);
        for cut in 0..26 {
            assert!(Decoder::new(&table[..cut]).is_err(), "{cut}");
        }
        for (at, byte) in [(4, 0), (24, 0), (25, 9), (0, 3)] {
            let mut table = table.clone();
            table[at] = byte;
            assert!(Decoder::new(&table).is_err(), "{at}");
        }
        let decoder = Decoder::new(&table).unwrap();
        let mut out = vec![1];
        for codes in [[0, 2].as_slice(), &[1, 255], &[254]] {
            assert!(decoder.decode(codes, &mut out).is_err());
        }
        assert_eq!(out, [1]);
    }
}
