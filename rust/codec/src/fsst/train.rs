//! Trains the symbol table for a text, as in the FSST paper (Boncz, Neumann, Leis, VLDB 2020).
//!
//! A round encodes a sample with the current symbols and counts the codes and the pairs of adjacent codes. Its candidates are the symbols,
//! their first bytes and the concatenated pairs; those that save most become the symbols of the next round. The better of the last two
//! rounds wins.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::matcher::{bucket, first_word, Matcher, Symbol, BUCKETS, WAYS};

/// The size of the sample, in bytes.
const SAMPLE: usize = 64 * 1024;
/// The longest piece of one value in the sample.
const PIECE: usize = 1024;
/// For each round, what the sample's size is divided by. The first rounds find little but pairs.
const ROUNDS: [usize; 6] = [8, 8, 4, 4, 2, 1];
const MAX_SYMBOLS: usize = 255;
/// The first code of a literal byte; those below are symbols.
const BYTES: usize = 256;
const CODES: usize = 2 * BYTES;
/// The weight of single bytes: without a symbol they need an escape, which takes two bytes and slows down both encoder and decoder.
const BYTE_WEIGHT: u64 = 8;

/// The best symbols for a text, unordered.
pub(super) fn train<'a>(count: usize, value: impl Fn(usize) -> &'a [u8]) -> Vec<Symbol> {
    let sample = sample(count, value);
    let (mut symbols, mut before) = (Vec::new(), None);
    let mut counts = Counts::new();
    for (round, share) in ROUNDS.into_iter().enumerate() {
        counts.clear();
        let part = sample.get(..sample.len().div_ceil(share)).unwrap_or(&sample);
        let size = counts.count(part, &symbols);
        let join = round + 1 < ROUNDS.len();
        let next = counts.best_symbols(&symbols, join);
        if !join {
            before = Some((size, symbols));
        }
        symbols = next;
    }
    counts.clear();
    let size = counts.count(&sample, &symbols);
    match before {
        Some((smaller, before)) if smaller < size => before,
        _ => symbols,
    }
}

/// Pseudo-random pieces of the text, always the same ones for the same text.
fn sample<'a>(count: usize, value: impl Fn(usize) -> &'a [u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        seed = seed
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        usize::try_from((seed >> 33) % (below.max(1) as u64)).unwrap_or(0)
    };
    let total = (0..count).try_fold(0_usize, |sum, i| {
        (sum <= SAMPLE).then(|| sum.saturating_add(value(i).len()))
    });
    if total.is_some_and(|total| total <= SAMPLE) {
        return (0..count).map(value).collect();
    }
    // `looks` bounds the loop where most values are empty.
    let (mut bytes, mut looks) = (0_usize, 0_usize);
    while bytes < SAMPLE && looks < SAMPLE {
        let value = value(random(count));
        let start = random(value.len().saturating_sub(PIECE) + 1);
        let piece = value.get(start..value.len().min(start + PIECE)).unwrap_or_default();
        (bytes, looks) = (bytes + piece.len(), looks + 1);
        pieces.push(piece);
    }
    pieces
}

/// How often codes and pairs of codes occur.
struct Counts {
    single: Vec<u32>,
    /// `CODES` for each first code.
    pairs: Vec<u16>,
}

impl Counts {
    fn new() -> Counts {
        Counts {
            single: vec![0; CODES],
            pairs: vec![0; CODES * CODES],
        }
    }

    fn clear(&mut self) {
        self.single.fill(0);
        self.pairs.fill(0);
    }

    fn single(&mut self, code: usize) {
        if let Some(count) = self.single.get_mut(code) {
            *count = count.saturating_add(1);
        }
    }

    fn pair(&mut self, first: usize, second: usize) {
        if let Some(count) = self.pairs.get_mut(first * CODES + second) {
            *count = count.saturating_add(1);
        }
    }

    /// Counts the codes of the sample; returns its encoded size in bytes.
    fn count(&mut self, sample: &[&[u8]], symbols: &[Symbol]) -> usize {
        let matcher = Matcher::new(symbols);
        let mut size = 0;
        for text in sample {
            let (mut rest, mut previous) = (*text, None);
            while let Some(first) = rest.first() {
                let word = first_word(rest);
                let found = if rest.len() >= 8 {
                    matcher.next(word)
                } else {
                    matcher.next_of(word, rest.len())
                };
                let byte = BYTES + usize::from(*first);
                let code = if found.is_literal() {
                    byte
                } else {
                    usize::from(found.code())
                };
                size += 1 + usize::from(found.is_literal());
                self.single(code);
                if found.length() > 1 {
                    self.single(byte);
                }
                if let Some(previous) = previous {
                    self.pair(previous, code);
                    if found.length() > 1 {
                        self.pair(previous, byte);
                    }
                }
                previous = Some(code);
                rest = rest.get(found.length()..).unwrap_or_default();
            }
        }
        size
    }

    /// The symbols that save most, out of the current ones, single bytes, and with `join` their pairs.
    fn best_symbols(&self, symbols: &[Symbol], join: bool) -> Vec<Symbol> {
        let symbol_of = |code: usize| match code.checked_sub(BYTES) {
            Some(byte) => Some(Symbol::byte(u8::try_from(byte).ok()?)),
            None => symbols.get(code).copied(),
        };
        let mut gains: HashMap<Symbol, u64> = HashMap::new();
        let codes = self.single.iter().zip(self.pairs.chunks_exact(CODES)).enumerate();
        for (code, (count, pairs)) in codes.filter(|(_, (count, _))| **count > 0) {
            let Some(first) = symbol_of(code) else { continue };
            let weight = if first.length == 1 { BYTE_WEIGHT } else { 1 };
            *gains.entry(first).or_default() += weight * first.length as u64 * u64::from(*count);
            if !join || first.length == super::MAX_SYMBOL {
                continue;
            }
            for (next, count) in pairs.iter().enumerate().filter(|(_, count)| **count > 1) {
                let Some(second) = symbol_of(next) else { continue };
                let joined = first.then(second);
                *gains.entry(joined).or_default() += joined.length as u64 * u64::from(*count);
            }
        }
        let mut gains: Vec<_> = gains
            .into_iter()
            .map(|(symbol, gain)| (Reverse(gain), symbol))
            .collect();
        // More than fit, as some may find their bucket full.
        let keep = (4 * MAX_SYMBOLS).min(gains.len());
        if keep < gains.len() {
            gains.select_nth_unstable(keep);
            gains.truncate(keep);
        }
        gains.sort_unstable();
        let mut taken = vec![0; BUCKETS];
        let symbols = gains.into_iter().map(|(_, symbol)| symbol);
        let placed = symbols.filter(|symbol| {
            let Some(taken) = taken.get_mut(bucket(symbol.bits)).filter(|_| symbol.length > 2) else {
                return true;
            };
            *taken += 1;
            *taken <= WAYS
        });
        placed.take(MAX_SYMBOLS).collect()
    }
}
