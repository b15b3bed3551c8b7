//! From codes to strings.

use super::{ESCAPE, MAGIC, MAX_SYMBOL};
use crate::error::{CodecError, Result};

/// Turns the codes of values back into bytes.
#[derive(Clone, Debug)]
pub struct Decoder {
    symbols: [[u8; MAX_SYMBOL]; 256],
    /// Lengths of the symbols; 0 where there is none.
    lengths: [u8; 256],
    /// Whether values are codes at all.
    is_encoded: bool,
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
        let Some(([count, _, _, is_encoded, magic @ ..], rest)) = symbol_table.split_first_chunk::<8>() else {
            return corrupt("without a header");
        };
        if *magic != MAGIC {
            return corrupt("without its magic number");
        }
        let mut decoder = Decoder {
            symbols: [[0; MAX_SYMBOL]; 256],
            lengths: [0; 256],
            is_encoded: is_encoded & 1 == 1,
        };
        if !decoder.is_encoded {
            return Ok(decoder);
        }
        let count = usize::from(*count);
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
        Ok(decoder)
    }

    /// Appends the bytes of one value, or of several one after the other.
    pub fn decode(&self, compressed: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if !self.is_encoded {
            out.extend_from_slice(compressed);
            return Ok(());
        }
        out.reserve(compressed.len());
        let start = out.len();
        let decoded = self.decode_codes(compressed, out);
        if decoded.is_err() {
            out.truncate(start);
        }
        decoded
    }

    fn decode_codes(&self, compressed: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let mut codes = compressed.iter();
        while let Some(code) = codes.next() {
            if *code == ESCAPE {
                let Some(literal) = codes.next() else {
                    return Err(CodecError::corrupt(
                        "expected a byte after an fsst escape, found the end of the value",
                    ));
                };
                out.push(*literal);
                continue;
            }
            let index = usize::from(*code);
            let length = self.lengths.get(index).copied().map_or(0, usize::from);
            if length == 0 {
                return Err(CodecError::corrupt(format!(
                    "expected a code of the fsst symbol table, found {code}, which stands for nothing"
                )));
            }
            let symbol = self.symbols.get(index).and_then(|symbol| symbol.get(..length));
            out.extend_from_slice(symbol.unwrap_or_default());
        }
        Ok(())
    }
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
