//! Strings to FSST codes.

use super::matcher::{first_word, Match, Matcher, Symbol};
use super::train::train;
use super::{MAGIC, SYMBOL_TABLE_SIZE};

/// Turns values into codes.
#[derive(Clone, Debug)]
pub struct Encoder {
    symbols: Vec<Symbol>,
    matcher: Matcher,
    /// A byte that no symbol of two or more bytes contains.
    terminator: Option<u8>,
    suffix_limit: u8,
}

/// Bytes of a value that are encoded at a time.
const PIECE: usize = 256;

impl Encoder {
    /// An encoder with symbols trained on the samples. The same samples give the same symbols.
    pub fn train(samples: &[&[u8]]) -> Encoder {
        Encoder::train_with(samples.len(), |index| samples.get(index).copied().unwrap_or_default())
    }

    /// As [`Encoder::train`], with `count` values by their index, of which about 64 KiB are sampled.
    pub fn train_with<'a>(count: usize, value: impl Fn(usize) -> &'a [u8]) -> Encoder {
        let mut symbols = train(count, value);
        // In the order that other decoders expect: pairs that start a longer symbol, other pairs, longer ones, single bytes.
        let starts_longer = |symbol: &Symbol| {
            symbols
                .iter()
                .any(|other| other.length > 2 && other.prefix() == symbol.prefix())
        };
        let mut ordered: Vec<_> = symbols
            .iter()
            .map(|symbol| match symbol.length {
                1 => (9, *symbol),
                2 if starts_longer(symbol) => (1, *symbol),
                length => (length, *symbol),
            })
            .collect();
        ordered.sort_unstable();
        let suffix_limit = ordered.iter().filter(|(group, _)| *group == 1).count();
        let longer = || ordered.iter().filter(|(_, symbol)| symbol.length > 1);
        let used = |byte: u8| {
            longer().any(|(_, symbol)| symbol.bits.to_le_bytes().iter().take(symbol.length).any(|b| *b == byte))
        };
        let terminator = (0..=u8::MAX).find(|byte| !used(*byte));
        symbols = ordered.into_iter().map(|(_, symbol)| symbol).collect();
        Encoder {
            matcher: Matcher::new(&symbols),
            symbols,
            terminator,
            suffix_limit: u8::try_from(suffix_limit).unwrap_or(u8::MAX),
        }
    }

    /// A byte that no symbol of two or more bytes contains, if there is one.
    pub(super) fn terminator(&self) -> Option<u8> {
        self.terminator
    }

    pub(super) fn matcher(&self) -> &Matcher {
        &self.matcher
    }

    /// The symbol table as files hold it: 2312 bytes.
    pub fn symbol_table(&self) -> Vec<u8> {
        let count = u8::try_from(self.symbols.len()).unwrap_or(u8::MAX);
        let mut table = vec![count, self.terminator.unwrap_or(0), self.suffix_limit, 1];
        table.extend(MAGIC);
        table.extend(self.symbols.iter().flat_map(|symbol| symbol.bits.to_le_bytes()));
        table.extend(
            self.symbols
                .iter()
                .map(|symbol| u8::try_from(symbol.length).unwrap_or(8)),
        );
        table.resize(SYMBOL_TABLE_SIZE, 0);
        table
    }

    /// Appends the codes of a value: at most two bytes per byte of the value.
    pub fn encode(&self, value: &[u8], out: &mut Vec<u8>) {
        let mut rest = value;
        let mut codes = [0_u8; 2 * PIECE + 2];
        while rest.len() >= 8 {
            let (mut read, mut written) = (0, 0);
            while let Some(bytes) = rest.get(read..).and_then(|rest| rest.first_chunk::<8>()) {
                if read >= PIECE {
                    break;
                }
                let found = self.matcher.next(u64::from_le_bytes(*bytes));
                read += found.length();
                written = put(&mut codes, written, found, bytes[0]);
            }
            out.extend_from_slice(codes.get(..written).unwrap_or_default());
            rest = rest.get(read..).unwrap_or_default();
        }
        let mut written = 0;
        while let Some(first) = rest.first() {
            let found = self.matcher.next_of(first_word(rest), rest.len());
            written = put(&mut codes, written, found, *first);
            rest = rest.get(found.length()..).unwrap_or_default();
        }
        out.extend_from_slice(codes.get(..written).unwrap_or_default());
    }
}

/// Writes a code, followed by the literal byte if the code is an escape; returns where the next code goes.
#[inline(always)]
fn put(codes: &mut [u8; 2 * PIECE + 2], at: usize, found: Match, byte: u8) -> usize {
    if let Some(two) = codes.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) {
        *two = [found.code(), byte];
    }
    at + 1 + usize::from(found.is_literal())
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::*;

    fn round_trip(encoder: &Encoder, values: &[&[u8]]) -> usize {
        let table = encoder.symbol_table();
        assert_eq!(table.len(), SYMBOL_TABLE_SIZE);
        let decoder = Decoder::new(&table).unwrap();
        let mut size = 0;
        for value in values {
            let (mut codes, mut out) = (Vec::new(), Vec::new());
            encoder.encode(value, &mut codes);
            assert!(codes.len() <= 2 * value.len());
            decoder.decode(&codes, &mut out).unwrap();
            assert_eq!(&out, value);
            size += codes.len();
        }
        size
    }

    #[test]
    fn test_text_comes_back_much_smaller() {
        let values: Vec<String> = (0..2000)
            .map(|i| format!("https://example.org/a/{}?id={}", i % 7, i * 37))
            .collect();
        let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        let size = round_trip(&Encoder::train(&values), &values);
        let raw: usize = values.iter().map(|value| value.len()).sum();
        assert!(size * 3 < raw, "{size} of {raw}");
    }

    #[test]
    fn test_all_bytes_and_lengths_come_back_whatever_was_trained() {
        let all: Vec<u8> = (0..=255).collect();
        let long: Vec<u8> = (0..5000_usize).map(|i| (i * i / 7) as u8).collect();
        let values: Vec<&[u8]> = (0..20)
            .map(|n| &all[..n])
            .chain([all.as_slice(), &long, b"\0\0\0\0\0\0\0\0\0\0"])
            .collect();
        for samples in [&[][..], &[b"".as_slice()], &[b"abcabcabc\0\0\0abc"], &values] {
            let encoder = Encoder::train(samples);
            round_trip(&encoder, &values);
            assert_eq!(encoder.symbol_table(), Encoder::train(samples).symbol_table());
        }
    }
}
