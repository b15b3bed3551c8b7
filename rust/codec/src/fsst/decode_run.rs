//! Decodes codes that all have symbols, the most by far: eight at a time, without a question about each.
//!
//! Where the bytes of a value end is asked of few codes only. So the place of every fourth code is noted, and what the codes between
//! stand for is counted when it is asked for.
#![allow(unsafe_code)]

use super::decode::Decoder;
use super::MAX_SYMBOL;

/// The most codes of a run.
pub(super) const RUN: usize = 2048;

/// From one noted place to the next.
const STEP: usize = 4;

/// The places of a run of so many codes.
pub(super) const fn places_of(codes: usize) -> usize {
    codes / STEP + 1
}

const HIGH: u64 = 0x8080_8080_8080_8080;

const ONES: u64 = 0x0101_0101_0101_0101;

/// Which codes have symbols: those below a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Added to the low seven bits of each code: carries into the highest where they are not below those of the number.
    carry: u64,
    /// All ones where the number is below 128, so that a code with the highest bit is not below it.
    is_low: u64,
}

impl Known {
    pub(super) fn new(count: u8) -> Known {
        Known {
            carry: (0x80 - u64::from(count & 0x7f)) * ONES,
            is_low: if count < 0x80 { u64::MAX } else { 0 },
        }
    }

    /// Whether eight codes are all below the number.
    #[inline(always)]
    pub(super) fn all(self, codes: [u8; 8]) -> bool {
        let codes = u64::from_le_bytes(codes);
        // No byte carries into the next: each sum is at most 127 + 128.
        let sums = (codes & !HIGH) + self.carry;
        ((sums & codes) | ((sums | codes) & self.is_low)) & HIGH == 0
    }
}

impl Decoder {
    /// Appends what codes stand for, eight at a time, up to [`RUN`] of them and as long as all eight have symbols; returns how many it
    /// decoded. Every fourth of `places`, counted in codes, becomes where the bytes of that code start.
    #[inline(always)]
    pub(super) fn decode_run(&self, codes: &[u8], out: &mut Vec<u8>, places: &mut [u16]) -> usize {
        let codes = codes.get(..RUN).unwrap_or(codes);
        let (start, reserved) = (out.len(), codes.len() * MAX_SYMBOL);
        out.reserve(reserved);
        let spare = out.as_mut_ptr().wrapping_add(start);
        let (mut read, mut written) = (0, 0);
        #[allow(clippy::cast_possible_truncation)] // A run stands for at most 2^14 bytes.
        let place = |written: usize| written as u16;
        let mut noted = places.as_chunks_mut::<{ 8 / STEP }>().0.iter_mut();
        for eight in codes.as_chunks::<8>().0 {
            if !self.knows(*eight) {
                break;
            }
            // From a register: to read each code costs as much as to read what it stands for.
            let mut left = u64::from_le_bytes(*eight);
            let mut here = [0; 8 / STEP];
            for here in &mut here {
                *here = place(written);
                for _ in 0..STEP {
                    #[allow(clippy::cast_possible_truncation)] // The lowest byte.
                    let (symbol, length) = self.symbol(left as u8);
                    left >>= 8;
                    debug_assert!(written + MAX_SYMBOL <= reserved && usize::from(length) <= MAX_SYMBOL);
                    // SAFETY: `reserved` bytes are reserved from `spare` on, eight for each code. `written` is the sum of the lengths of
                    // the codes before this one, each of which is at most 8: they all have symbols (`knows`), whose lengths `new` checked.
                    // So eight bytes are left for this one.
                    unsafe { spare.add(written).cast::<[u8; MAX_SYMBOL]>().write(symbol) };
                    written += usize::from(length);
                }
            }
            if let Some(noted) = noted.next() {
                *noted = here;
            }
            read += 8;
        }
        if let Some(last) = places.get_mut(read / STEP) {
            *last = place(written);
        }
        // SAFETY: each write starts where the symbol before it ends and writes eight bytes, of which at most eight count: the first
        // `written` bytes are initialised; they are at most `reserved`.
        unsafe { out.set_len(start + written) };
        read
    }

    /// Where the bytes of the code at `at` start, in a run that `places` were noted of; `None` beyond it. `codes` are those of the run.
    #[inline(always)]
    pub(super) fn place_in_run(&self, codes: &[u8], places: &[u16], at: usize) -> Option<usize> {
        let noted = usize::from(*places.get(at / STEP)?);
        let Some([first, second, third, _]) = codes.get(at / STEP * STEP..).and_then(|codes| codes.first_chunk())
        else {
            // Only a run's end has no four codes behind it.
            return at.is_multiple_of(STEP).then_some(noted);
        };
        let length = |code: &u8| u32::from(self.symbol(*code).1);
        // Those of codes before `at`, added by a multiplication: a branch would be mispredicted.
        let lengths = length(first) | length(second) << 8 | length(third) << 16;
        let before = lengths & ((1 << (8 * (at % STEP))) - 1);
        Some(noted + (before.wrapping_mul(0x0101_0101) >> 24) as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{ESCAPE, MAGIC};
    use super::*;
    use crate::baseline::decode_fsst;

    fn table(symbols: &[Vec<u8>]) -> Vec<u8> {
        let mut table = vec![symbols.len() as u8, 0, 0, 1];
        table.extend(MAGIC);
        for symbol in symbols {
            let mut padded = symbol.clone();
            // What lies beyond a symbol is anything.
            padded.resize(8, 0xee);
            table.extend(padded);
        }
        table.extend(symbols.iter().map(|symbol| symbol.len() as u8));
        table.resize(super::super::SYMBOL_TABLE_SIZE, 0);
        table
    }

    #[test]
    fn test_codes_below_every_number_are_known() {
        for count in 0..=255_u8 {
            let known = Known::new(count);
            for code in 0..=255_u8 {
                for place in 0..8 {
                    for other in [0, count.saturating_sub(1)] {
                        let mut codes = [other; 8];
                        codes[place] = code;
                        let all = codes.iter().all(|code| *code < count);
                        assert_eq!(known.all(codes), all, "{codes:?} of {count}");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn test_values_equal_those_of_the_baseline(
            symbols in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..=8), 1..=255),
            runs in prop::collection::vec((0..3000_usize, any::<u64>(), any::<bool>()), 1..5),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
        ) {
            let decoder = Decoder::new(&table(&symbols)).unwrap();
            let slices: Vec<&[u8]> = symbols.iter().map(Vec::as_slice).collect();
            // The codes, and the places between them where a value may end.
            let (mut codes, mut allowed) = (Vec::new(), vec![0]);
            for (len, seed, escapes) in runs {
                let mut state = seed;
                for _ in 0..len {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    if escapes && state >> 61 == 0 {
                        codes.push(ESCAPE);
                    }
                    let code = (state >> 33) as u8;
                    let is_literal = codes.last() == Some(&ESCAPE) && allowed.last() != Some(&codes.len());
                    codes.push(if is_literal { code } else { code % symbols.len() as u8 });
                    allowed.push(codes.len());
                }
            }
            let mut bounds: Vec<usize> = cuts.iter().map(|cut| allowed[cut.index(allowed.len())]).collect();
            bounds.push(codes.len());
            bounds.sort_unstable();
            let expected = decode_fsst(&slices, &codes).unwrap();
            let mut out = b"<".to_vec();
            decoder.decode(&codes, &mut out).unwrap();
            prop_assert_eq!(&out[1..], &expected);
            let (mut out, mut ends) = (b"<".to_vec(), Vec::new());
            let plain = decoder.decode_values(&codes, bounds.iter().copied(), &mut out, |end| ends.push(end)).unwrap();
            prop_assert_eq!(&out[1..], &expected);
            prop_assert!(!plain || !codes.contains(&ESCAPE));
            let ended = |bound: &usize| 1 + decode_fsst(&slices, &codes[..*bound]).unwrap().len();
            prop_assert_eq!(ends, bounds.iter().map(ended).collect::<Vec<_>>());
            prop_assert_eq!(decoder.is_ascii(), slices.iter().all(|symbol| symbol.is_ascii()));
        }

        #[test]
        fn test_any_codes_are_values_or_an_error_as_the_baseline_has_them(
            symbols in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..=8), 0..=255),
            codes in prop::collection::vec(any::<u8>(), 0..5000),
            bounds in prop::collection::vec(0..6000_usize, 0..20),
        ) {
            let decoder = Decoder::new(&table(&symbols)).unwrap();
            let slices: Vec<&[u8]> = symbols.iter().map(Vec::as_slice).collect();
            let mut out = vec![7];
            let done = decoder.decode(&codes, &mut out).ok().map(|()| out[1..].to_vec());
            prop_assert_eq!(&done, &decode_fsst(&slices, &codes));
            let mut out = vec![7];
            let values = decoder.decode_values(&codes, bounds.into_iter(), &mut out, |_| {});
            prop_assert!(done.is_some() || values.is_err());
            prop_assert_eq!(&out[1..], done.filter(|_| values.is_ok()).unwrap_or_default());
        }
    }
}
