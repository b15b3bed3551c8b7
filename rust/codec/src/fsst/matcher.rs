//! Finds the next symbol of a text: the longest one that matches.

use std::hint::select_unpredictable;

use super::{ESCAPE, MAX_SYMBOL};

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

/// A match. Bits 0 to 7: the code; bits 8 to 11: how many bytes it takes (2 with the literal after an escape); from bit 12 on: how many
/// bytes of the text it stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match(u16);

impl Match {
    /// No symbol matches: an escape and the literal byte.
    const LITERAL: Match = Match(1 << 12 | 2 << 8 | ESCAPE as u16);

    fn new(code: u8, length: u8) -> Match {
        Match(u16::from(length) << 12 | 1 << 8 | u16::from(code))
    }

    /// The code, or the escape.
    #[inline(always)]
    pub fn code(self) -> u8 {
        self.0.to_le_bytes()[0]
    }

    /// How many bytes the code takes, with the literal after an escape.
    #[inline(always)]
    pub fn size(self) -> usize {
        usize::from(self.0 >> 8 & 3)
    }

    /// Whether the byte itself follows the code.
    #[inline(always)]
    pub fn is_literal(self) -> bool {
        self.size() > 1
    }

    /// How many bytes of the text it stands for.
    #[inline(always)]
    pub fn length(self) -> usize {
        usize::from(self.0 >> 12)
    }
}

/// How many symbols of three or more bytes a bucket holds.
pub(super) const WAYS: usize = 2;

/// The symbols of three or more bytes with one hash, the longest first; unused entries match no word.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Bucket {
    /// The bytes of a word that are compared.
    masks: [u64; WAYS],
    bits: [u64; WAYS],
    found: [Match; WAYS],
}

const EMPTY: Bucket = Bucket {
    masks: [0; WAYS],
    bits: [u64::MAX; WAYS],
    found: [Match::LITERAL; WAYS],
};

pub(super) const BUCKETS: usize = 1024;

/// Finds symbols by their first bytes.
#[derive(Clone, Debug)]
pub(super) struct Matcher {
    /// For each pair of bytes, the symbol of those two, or else of the first.
    pairs: Box<[Match; 1 << 16]>,
    /// For each byte, as in `pairs`.
    bytes: [Match; 256],
    /// By the hash of three bytes.
    buckets: Box<[Bucket; BUCKETS]>,
}

/// The bucket of the symbols of three or more bytes that a text may start with: a hash of its first three bytes.
pub(super) fn bucket(word: u64) -> usize {
    #[allow(clippy::cast_possible_truncation)] // 10 bits are left.
    let bucket = ((word & 0xff_ffff).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize;
    bucket
}

impl Matcher {
    /// A matcher of at most 255 symbols; a symbol's code is its index. Of those that share a bucket, only the [`WAYS`] longest are found.
    pub fn new(symbols: &[Symbol]) -> Matcher {
        let mut matcher = Matcher {
            pairs: Box::new([Match::LITERAL; 1 << 16]),
            bytes: [Match::LITERAL; 256],
            buckets: Box::new([EMPTY; BUCKETS]),
        };
        let place = |symbol: &Symbol| usize::try_from(symbol.prefix()).unwrap_or(0);
        for (code, symbol) in (0_u8..=254).zip(symbols).filter(|(_, symbol)| symbol.length == 1) {
            if let Some(entry) = matcher.bytes.get_mut(place(symbol)) {
                *entry = Match::new(code, 1);
            }
        }
        for pairs in matcher.pairs.chunks_exact_mut(256) {
            pairs.copy_from_slice(&matcher.bytes);
        }
        for (code, symbol) in (0_u8..=254).zip(symbols).filter(|(_, symbol)| symbol.length == 2) {
            if let Some(entry) = matcher.pairs.get_mut(place(symbol)) {
                *entry = Match::new(code, 2);
            }
        }
        let mut longs: Vec<_> = (0_u8..=254)
            .zip(symbols)
            .filter(|(_, symbol)| symbol.length > 2)
            .collect();
        longs.sort_by_key(|(_, symbol)| (bucket(symbol.bits), std::cmp::Reverse(symbol.length)));
        for (code, symbol) in longs {
            let length = u8::try_from(symbol.length).unwrap_or(8);
            let Some(bucket) = matcher.buckets.get_mut(bucket(symbol.bits)) else {
                continue;
            };
            let ways = bucket.masks.iter_mut().zip(&mut bucket.bits).zip(&mut bucket.found);
            for ((mask, bits), found) in ways {
                if *mask == 0 {
                    (*mask, *bits) = (u64::MAX >> (64 - 8 * length), symbol.bits);
                    *found = Match::new(code, length);
                    break;
                }
            }
        }
        matcher
    }

    #[inline(always)]
    fn bucket_of(&self, word: u64) -> &Bucket {
        self.buckets.get(bucket(word)).unwrap_or(&EMPTY)
    }

    /// The symbol at the start of a text of at least eight bytes. Without a branch, as it would be mispredicted.
    #[inline(always)]
    pub fn next(&self, word: u64) -> Match {
        let Bucket { masks, bits, found } = self.bucket_of(word);
        let ([mask, other_mask], [bits, other_bits], [longest, other]) = (masks, bits, found);
        #[allow(clippy::cast_possible_truncation)] // 16 bits are left.
        let pair = (word & 0xffff) as usize;
        let short = self.pairs.get(pair).map_or(Match::LITERAL.0, |found| found.0);
        let shorter = select_unpredictable(word & other_mask == *other_bits, other.0, short);
        Match(select_unpredictable(word & mask == *bits, longest.0, shorter))
    }

    /// The symbol at the start of a text of one to seven bytes, `word` being padded with zeros.
    pub fn next_of(&self, word: u64, left: usize) -> Match {
        let Bucket { masks, bits, found } = self.bucket_of(word);
        let mut ways = masks.iter().zip(bits).zip(found);
        if let Some((_, found)) = ways.find(|((mask, bits), found)| found.length() <= left && word & **mask == **bits) {
            return *found;
        }
        #[allow(clippy::cast_possible_truncation)] // 16 and 8 bits are left.
        let (pair, byte) = ((word & 0xffff) as usize, (word & 0xff) as usize);
        let entries = if left >= 2 {
            self.pairs.get(pair)
        } else {
            self.bytes.get(byte)
        };
        entries.copied().unwrap_or(Match::LITERAL)
    }
}

/// The first eight bytes of a text, padded with zeros.
#[inline]
pub(super) fn first_word(text: &[u8]) -> u64 {
    if let Some(bytes) = text.first_chunk::<8>() {
        return u64::from_le_bytes(*bytes);
    }
    text.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}
