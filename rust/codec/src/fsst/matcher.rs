//! Which symbol comes next in a text: the longest one that fits.

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

/// What comes next: a code in the lowest byte, a bit if it is an escape, and the bytes that it stands for above.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match(u16);

impl Match {
    /// A byte that no symbol starts.
    const LITERAL: Match = Match(1 << 12 | 1 << 8 | ESCAPE as u16);

    fn new(code: u8, length: u8) -> Match {
        Match(u16::from(length) << 12 | u16::from(code))
    }

    /// The code, or the escape.
    #[inline(always)]
    pub fn code(self) -> u8 {
        self.0.to_le_bytes()[0]
    }

    /// Whether the byte itself follows the code.
    #[inline(always)]
    pub fn is_literal(self) -> bool {
        self.0 & 1 << 8 != 0
    }

    /// How many bytes of the text it stands for.
    #[inline(always)]
    pub fn length(self) -> usize {
        usize::from(self.0 >> 12)
    }
}

/// A symbol of three bytes and more.
#[derive(Clone, Copy, Debug)]
struct Long {
    bits: u64,
    found: Match,
    /// The bits beyond the length.
    unused: u8,
    /// How many shorter symbols the bucket has, and where they start in `others`.
    others: u8,
    first_other: u8,
}

/// What no word matches: its bits are not 0 beyond its length.
const NO_SYMBOL: Long = Long {
    bits: u64::MAX,
    found: Match::LITERAL,
    unused: 56,
    others: 0,
    first_other: 0,
};

impl Long {
    #[inline(always)]
    fn matches(&self, word: u64) -> bool {
        word & (u64::MAX >> self.unused) == self.bits
    }
}

const BUCKETS: usize = 1024;

/// Finds symbols by their first bytes.
#[derive(Clone, Debug)]
pub(super) struct Matcher {
    /// For each pair of bytes, the symbol that is those two, or the first.
    pairs: Box<[Match; 1 << 16]>,
    /// For each byte, as in `pairs`.
    bytes: [Match; 256],
    /// For each hash of three bytes, the longest of its symbols.
    buckets: Box<[Long; BUCKETS]>,
    /// The other symbols of three bytes and more by bucket, the longest first.
    others: Vec<Long>,
}

fn bucket(word: u64) -> usize {
    #[allow(clippy::cast_possible_truncation)] // 10 bits are left.
    let bucket = ((word & 0xff_ffff).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize;
    bucket
}

impl Matcher {
    /// A matcher of at most 255 symbols; a symbol's code is its place.
    pub fn new(symbols: &[Symbol]) -> Matcher {
        let mut matcher = Matcher {
            pairs: Box::new([Match::LITERAL; 1 << 16]),
            bytes: [Match::LITERAL; 256],
            buckets: Box::new([NO_SYMBOL; BUCKETS]),
            others: Vec::new(),
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
            let long = Long {
                bits: symbol.bits,
                found: Match::new(code, length),
                unused: 64 - 8 * length,
                others: 0,
                first_other: u8::try_from(matcher.others.len()).unwrap_or(u8::MAX),
            };
            match matcher.buckets.get_mut(bucket(symbol.bits)) {
                Some(bucket) if !bucket.found.is_literal() => {
                    bucket.others += 1;
                    matcher.others.push(long);
                }
                Some(bucket) => *bucket = long,
                None => {}
            }
        }
        matcher
    }

    #[inline(always)]
    fn bucket_of(&self, word: u64) -> &Long {
        self.buckets.get(bucket(word)).unwrap_or(&NO_SYMBOL)
    }

    #[inline(always)]
    fn others_of(&self, longest: &Long) -> &[Long] {
        let start = usize::from(longest.first_other);
        self.others
            .get(start..start + usize::from(longest.others))
            .unwrap_or_default()
    }

    /// The symbol at the start of a text of eight bytes and more.
    #[inline(always)]
    pub fn next(&self, word: u64) -> Match {
        let longest = self.bucket_of(word);
        if longest.matches(word) {
            return longest.found;
        }
        if longest.others > 0 {
            if let Some(other) = self.others_of(longest).iter().find(|other| other.matches(word)) {
                return other.found;
            }
        }
        #[allow(clippy::cast_possible_truncation)] // 16 bits are left.
        let pair = (word & 0xffff) as usize;
        self.pairs.get(pair).copied().unwrap_or(Match::LITERAL)
    }

    /// The symbol at the start of a text of one to seven bytes, `word` filled up with zeros.
    pub fn next_of(&self, word: u64, left: usize) -> Match {
        let longest = self.bucket_of(word);
        let mut longs = std::iter::once(longest).chain(self.others_of(longest));
        if let Some(long) = longs.find(|long| long.found.length() <= left && long.matches(word)) {
            return long.found;
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

/// The first eight bytes of a text, filled up with zeros.
#[inline]
pub(super) fn first_word(text: &[u8]) -> u64 {
    if let Some(bytes) = text.first_chunk::<8>() {
        return u64::from_le_bytes(*bytes);
    }
    text.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}
