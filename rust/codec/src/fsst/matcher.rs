//! Which symbol comes next in a text: the longest one that fits.

use super::MAX_SYMBOL;

/// Up to eight bytes that get a code of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Symbol {
    /// The bytes, the first one lowest; 0 beyond the length.
    pub bits: u64,
    /// How many bytes.
    pub length: usize,
}

impl Symbol {
    /// A symbol of one byte.
    pub fn byte(byte: u8) -> Symbol {
        Symbol {
            bits: u64::from(byte),
            length: 1,
        }
    }

    /// One symbol after the other, cut at eight bytes.
    pub fn then(self, next: Symbol) -> Symbol {
        let shifted = if self.length < MAX_SYMBOL {
            next.bits << (8 * self.length)
        } else {
            0
        };
        Symbol {
            bits: self.bits | shifted,
            length: (self.length + next.length).min(MAX_SYMBOL),
        }
    }

    /// The first two bytes.
    pub fn prefix(self) -> u64 {
        self.bits & 0xffff
    }
}

/// The code of a byte that no symbol starts.
pub(super) const LITERAL: u16 = 256;

/// What comes next: a code, or [`LITERAL`], and the bytes that it stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub code: u16,
    pub length: usize,
}

/// A symbol of three bytes and more.
#[derive(Clone, Copy, Debug)]
struct Long {
    bits: u64,
    mask: u64,
    code: u8,
    length: u8,
}

const BUCKETS: usize = 4096;

/// Finds symbols by their first bytes.
#[derive(Clone, Debug)]
pub(super) struct Matcher {
    /// For each pair of bytes, the code of the symbol that is those two, or the first; length << 12.
    pairs: Vec<u16>,
    /// For each byte, as in `pairs`.
    bytes: Vec<u16>,
    /// For each hash of three bytes, where its symbols start in `longs`, and how many there are.
    buckets: Vec<(u8, u8)>,
    /// Symbols of three bytes and more by bucket, the longest first.
    longs: Vec<Long>,
}

fn bucket(word: u64) -> usize {
    #[allow(clippy::cast_possible_truncation)] // 12 bits are left.
    let bucket = ((word & 0xff_ffff).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize;
    bucket
}

#[inline(always)]
fn unpack(entry: u16) -> Match {
    Match {
        code: entry & 0x1ff,
        length: usize::from(entry >> 12),
    }
}

impl Matcher {
    /// A matcher of at most 255 symbols; a symbol's code is its place.
    pub fn new(symbols: &[Symbol]) -> Matcher {
        let mut matcher = Matcher {
            pairs: Vec::with_capacity(1 << 16),
            bytes: vec![1 << 12 | LITERAL; 256],
            buckets: vec![(0, 0); BUCKETS],
            longs: Vec::new(),
        };
        let place = |symbol: &Symbol| usize::try_from(symbol.prefix()).unwrap_or(0);
        for (code, symbol) in (0_u16..).zip(symbols).filter(|(_, symbol)| symbol.length == 1) {
            if let Some(entry) = matcher.bytes.get_mut(place(symbol)) {
                *entry = 1 << 12 | code;
            }
        }
        for _ in 0..256 {
            matcher.pairs.extend_from_slice(&matcher.bytes);
        }
        for (code, symbol) in (0_u16..).zip(symbols).filter(|(_, symbol)| symbol.length == 2) {
            if let Some(entry) = matcher.pairs.get_mut(place(symbol)) {
                *entry = 2 << 12 | code;
            }
        }
        let mut longs: Vec<_> = (0_u8..=254)
            .zip(symbols)
            .filter(|(_, symbol)| symbol.length > 2)
            .collect();
        longs.sort_by_key(|(_, symbol)| (bucket(symbol.bits), std::cmp::Reverse(symbol.length)));
        for (place, (code, symbol)) in (0_u8..=254).zip(longs) {
            if let Some(bucket) = matcher.buckets.get_mut(bucket(symbol.bits)) {
                if bucket.1 == 0 {
                    bucket.0 = place;
                }
                bucket.1 += 1;
            }
            matcher.longs.push(Long {
                bits: symbol.bits,
                mask: u64::MAX >> (8 * (MAX_SYMBOL - symbol.length)),
                code,
                length: u8::try_from(symbol.length).unwrap_or(8),
            });
        }
        matcher
    }

    /// The symbol at the start of a text of eight bytes and more.
    #[inline(always)]
    pub fn next(&self, word: u64) -> Match {
        let (start, count) = self.buckets.get(bucket(word)).copied().unwrap_or_default();
        if count > 0 {
            let longs = self
                .longs
                .get(usize::from(start)..usize::from(start) + usize::from(count));
            for long in longs.unwrap_or_default() {
                if word & long.mask == long.bits {
                    return Match {
                        code: u16::from(long.code),
                        length: usize::from(long.length),
                    };
                }
            }
        }
        #[allow(clippy::cast_possible_truncation)] // 16 bits are left.
        let pair = (word & 0xffff) as usize;
        unpack(self.pairs.get(pair).copied().unwrap_or_default())
    }

    /// The symbol at the start of a text of one to seven bytes, `word` filled up with zeros.
    pub fn next_of(&self, word: u64, left: usize) -> Match {
        let (start, count) = self.buckets.get(bucket(word)).copied().unwrap_or_default();
        let longs = self
            .longs
            .get(usize::from(start)..usize::from(start) + usize::from(count));
        for long in longs.unwrap_or_default() {
            if usize::from(long.length) <= left && word & long.mask == long.bits {
                return Match {
                    code: u16::from(long.code),
                    length: usize::from(long.length),
                };
            }
        }
        #[allow(clippy::cast_possible_truncation)] // 16 and 8 bits are left.
        let (pair, byte) = ((word & 0xffff) as usize, (word & 0xff) as usize);
        let entries = if left >= 2 {
            self.pairs.get(pair)
        } else {
            self.bytes.get(byte)
        };
        unpack(entries.copied().unwrap_or_default())
    }
}

/// The first eight bytes of a text, filled up with zeros.
#[inline]
pub(super) fn first_word(text: &[u8]) -> u64 {
    if let Some(bytes) = text.first_chunk::<8>() {
        return u64::from_le_bytes(*bytes);
    }
    text.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}
