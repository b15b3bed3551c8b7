//! Values looked up by their numbers: the items of a dictionary, of one width or of any length.
//!
//! All numbers are checked before the first value is written, so that the loops over them ask nothing. What is beyond an item that is
//! copied in whole words is overwritten by the next one: a copy of the length that an item has would be a branch that nobody can predict.
#![allow(unsafe_code)]

use crate::ends::Offset;
use crate::error::{CodecError, Result};

/// How many items of any length are located before they are copied: so many reads of memory are under way at once.
const BATCH: usize = 128;

/// The longest item that is copied as if all were as long.
const SHORT: usize = 64;

/// The longest item that is looked up here: of longer ones a copy of their own length costs no more.
pub const LONGEST: usize = 256;

/// The most bytes of items of which some are longer than [`SHORT`]: they are here a second time.
const MOST_BYTES: usize = 1 << 20;

mod sealed {
    /// Only for the integers below: what is checked is what is read only if a number says the same each time.
    pub trait Sealed {}
}

/// The number of an item as a file stores it: an unsigned integer, little endian.
pub trait Number: Copy + sealed::Sealed {
    /// The integer.
    type Word: Copy + Ord + Default;
    /// Its value.
    fn word(self) -> Self::Word;
    /// A value as a place; one beyond all places where it is beyond them.
    fn place_of(word: Self::Word) -> usize;
    /// As a place.
    #[inline(always)]
    fn place(self) -> usize {
        Self::place_of(self.word())
    }
}

macro_rules! number {
    ($($word:ty),*) => {$(
        impl sealed::Sealed for [u8; size_of::<$word>()] {}

        impl Number for [u8; size_of::<$word>()] {
            type Word = $word;
            #[inline(always)]
            fn word(self) -> $word {
                <$word>::from_le_bytes(self)
            }
            #[inline(always)]
            fn place_of(word: $word) -> usize {
                usize::try_from(word).unwrap_or(usize::MAX)
            }
        }
    )*};
}

number!(u8, u16, u32, u64);

/// Refuses numbers that are not below `count`.
pub fn check<N: Number>(numbers: &[N], count: usize) -> Result<()> {
    let largest = numbers
        .iter()
        .fold(N::Word::default(), |largest, number| largest.max(number.word()));
    if numbers.is_empty() || N::place_of(largest) < count {
        return Ok(());
    }
    Err(CodecError::corrupt(format!(
        "expected dictionary indices below {count}, found {}",
        N::place_of(largest)
    )))
}

/// Appends items of `WIDTH` bytes by their numbers.
pub fn gather_words<N: Number, const WIDTH: usize>(
    numbers: &[N],
    items: &[[u8; WIDTH]],
    out: &mut Vec<u8>,
) -> Result<()> {
    check(numbers, items.len())?;
    let too_many = || {
        CodecError::corrupt(format!(
            "expected values that fit into memory, found {} of {WIDTH} bytes",
            numbers.len()
        ))
    };
    let (start, size) = (out.len(), numbers.len().checked_mul(WIDTH).ok_or_else(too_many)?);
    out.reserve(size);
    let spare = out.spare_capacity_mut().as_mut_ptr().cast::<[u8; WIDTH]>();
    for (place, number) in numbers.iter().enumerate() {
        // SAFETY: `check` found all numbers below the number of items. `place` is below the number of values, for each of which `WIDTH`
        // bytes are reserved from `spare` on; arrays of bytes may lie anywhere.
        unsafe { spare.add(place).write(*items.get_unchecked(number.place())) };
    }
    // SAFETY: `size` bytes were reserved, and each of them is written above.
    unsafe { out.set_len(start + size) };
    Ok(())
}

/// Items of any length, by where each starts in bytes and how many it has.
#[derive(Clone, Debug, Default)]
pub struct Items {
    /// Their bytes, and behind them as many as may be copied of the last one.
    bytes: Vec<u8>,
    /// Where each starts, and its length.
    spans: Vec<(u32, u32)>,
    longest: usize,
    /// The length of each, where all are equally long.
    equal: Option<usize>,
    is_text: bool,
}

impl Items {
    /// Items one after the other. `None` where one is longer than [`LONGEST`], or where they have more bytes than this is made for.
    pub fn new<'a>(items: impl Iterator<Item = &'a [u8]>) -> Option<Items> {
        let mut all = Items::default();
        for item in items {
            all.longest = all.longest.max(item.len());
            if item.len() > LONGEST || (all.longest > SHORT && all.bytes.len() > MOST_BYTES) {
                return None;
            }
            let span = (u32::try_from(all.bytes.len()).ok()?, u32::try_from(item.len()).ok()?);
            all.spans.push(span);
            all.bytes.extend_from_slice(item);
        }
        let text = std::str::from_utf8(&all.bytes);
        all.is_text = text.is_ok_and(|text| all.spans.iter().all(|(from, _)| text.is_char_boundary(*from as usize)));
        let is_equal = all.spans.iter().all(|(_, length)| *length as usize == all.longest);
        all.equal = is_equal.then_some(all.longest);
        all.bytes.resize(all.bytes.len() + SHORT, 0);
        Some(all)
    }

    /// Whether each item is UTF-8.
    pub fn is_text(&self) -> bool {
        self.is_text
    }

    /// Bytes that they take.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.spans.len() * size_of::<(u32, u32)>()
    }

    /// Appends items by their numbers to `out`, and the end of each there to `ends`.
    pub fn gather<N: Number, O: Offset>(&self, numbers: &[N], out: &mut Vec<u8>, ends: &mut Vec<O>) -> Result<()> {
        match self.equal {
            Some(1) => return self.gather_equal::<N, O, 1>(numbers, out, ends),
            Some(2) => return self.gather_equal::<N, O, 2>(numbers, out, ends),
            Some(3) => return self.gather_equal::<N, O, 3>(numbers, out, ends),
            Some(4) => return self.gather_equal::<N, O, 4>(numbers, out, ends),
            Some(8) => return self.gather_equal::<N, O, 8>(numbers, out, ends),
            Some(16) => return self.gather_equal::<N, O, 16>(numbers, out, ends),
            _ => check(numbers, self.spans.len())?,
        }
        match self.longest {
            0..=8 => self.copy::<N, O, 8>(numbers, out, ends),
            9..=16 => self.copy::<N, O, 16>(numbers, out, ends),
            17..=32 => self.copy::<N, O, 32>(numbers, out, ends),
            _ => self.copy::<N, O, SHORT>(numbers, out, ends),
        }
        Ok(())
    }

    /// Items of `WIDTH` bytes each.
    fn gather_equal<N: Number, O: Offset, const WIDTH: usize>(
        &self,
        numbers: &[N],
        out: &mut Vec<u8>,
        ends: &mut Vec<O>,
    ) -> Result<()> {
        let start = out.len();
        let items = self.bytes.as_chunks::<WIDTH>().0.get(..self.spans.len());
        gather_words(numbers, items.unwrap_or_default(), out)?;
        ends.extend((1..=numbers.len()).map(|count| O::from_u64((start + count * WIDTH) as u64)));
        Ok(())
    }

    /// `STEP` is at least the length of the longest item, or [`SHORT`].
    fn copy<N: Number, O: Offset, const STEP: usize>(&self, numbers: &[N], out: &mut Vec<u8>, ends: &mut Vec<O>) {
        debug_assert!(STEP == SHORT || (STEP >= self.longest && STEP <= SHORT));
        let mut spans = [(0, 0); BATCH];
        for numbers in numbers.chunks(BATCH) {
            let mut touched = 0;
            for (span, number) in spans.iter_mut().zip(numbers) {
                // SAFETY: `gather` checked all numbers against the number of spans.
                *span = *unsafe { self.spans.get_unchecked(number.place()) };
                // Brings the item near while the others are located.
                touched |= self.bytes.get(span.0 as usize).copied().unwrap_or(0);
            }
            std::hint::black_box(touched);
            let spans = spans.get(..numbers.len()).unwrap_or_default();
            let start = out.len();
            let mut size = 0;
            ends.extend(spans.iter().map(|(_, length)| {
                size += *length as usize;
                O::from_u64((start + size) as u64)
            }));
            let reserved = size + STEP;
            out.reserve(reserved);
            let spare = out.as_mut_ptr().wrapping_add(start);
            let mut written = 0;
            for (from, length) in spans {
                let (from, length) = (*from as usize, *length as usize);
                debug_assert!(written + length <= size && from + length + SHORT <= self.bytes.len());
                // SAFETY: `new` made each span: `from` and `length` are together at most the number of bytes before `SHORT` more were
                // added, which is at least `STEP`. `written` and `length` are together at most `size`, the sum of all lengths, and `STEP`
                // more bytes than that are reserved. The two lie in different vectors.
                unsafe {
                    let (item, to) = (self.bytes.as_ptr().add(from), spare.add(written));
                    to.cast::<[u8; STEP]>().write(item.cast::<[u8; STEP]>().read());
                    if STEP == SHORT && length > STEP {
                        let mut copied = STEP;
                        while copied < length {
                            let piece = item.add(copied).cast::<[u8; STEP]>().read();
                            to.add(copied).cast::<[u8; STEP]>().write(piece);
                            copied += STEP;
                        }
                    }
                }
                written += length;
            }
            // SAFETY: each write starts where the item before it ends, and writes at least the item: the first `size` bytes are
            // initialised; they are less than `reserved`.
            unsafe { out.set_len(start + size) };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn test_items_of_any_length_equal_those_that_are_copied_one_by_one(
            longest in prop::sample::select(vec![0_usize, 1, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129, 256]),
            lengths in prop::collection::vec(any::<prop::sample::Index>(), 1..300),
            numbers in prop::collection::vec(any::<u16>(), 0..1000),
            is_equal in any::<bool>(),
            kind in 0..3_u8,
        ) {
            let item = |(number, length): (usize, &prop::sample::Index)| {
                let length = if is_equal { longest } else { length.index(longest + 1) };
                match kind {
                    0 => vec![number as u8 & 0x7f; length],
                    1 => vec![number as u8 | 0x80; length],
                    _ => "\u{e9}".repeat(length / 2).into_bytes(),
                }
            };
            let items: Vec<Vec<u8>> = lengths.iter().enumerate().map(item).collect();
            let numbers: Vec<u16> = numbers.iter().map(|number| number % items.len() as u16).collect();
            let all = Items::new(items.iter().map(Vec::as_slice)).unwrap();
            prop_assert_eq!(all.is_text(), items.iter().all(|item| std::str::from_utf8(item).is_ok()));
            let (mut out, mut ends) = (b"<".to_vec(), vec![1_i32]);
            let stored: Vec<[u8; 2]> = numbers.iter().map(|number| number.to_le_bytes()).collect();
            all.gather(&stored, &mut out, &mut ends).unwrap();
            let (mut expected, mut expected_ends) = (b"<".to_vec(), vec![1]);
            for number in &numbers {
                expected.extend_from_slice(&items[usize::from(*number)]);
                expected_ends.push(expected.len() as i32);
            }
            prop_assert_eq!((&out, ends), (&expected, expected_ends));
            let wide: Vec<[u8; 8]> = numbers.iter().map(|number| u64::from(*number).to_le_bytes()).collect();
            let mut out = b"<".to_vec();
            all.gather(&wide, &mut out, &mut Vec::<i64>::new()).unwrap();
            prop_assert_eq!(&out, &expected);
        }

        #[test]
        fn test_words_equal_those_that_are_copied_one_by_one(
            items in prop::collection::vec(any::<[u8; 8]>(), 1..300),
            numbers in prop::collection::vec(any::<u32>(), 0..1000),
        ) {
            let numbers: Vec<u32> = numbers.iter().map(|number| number % items.len() as u32).collect();
            let mut out = b"<".to_vec();
            let stored: Vec<[u8; 4]> = numbers.iter().map(|number| number.to_le_bytes()).collect();
            gather_words(&stored, &items, &mut out).unwrap();
            let expected: Vec<u8> = numbers.iter().flat_map(|number| items[*number as usize]).collect();
            prop_assert_eq!(&out[1..], &expected);
        }
    }

    #[test]
    fn test_numbers_beyond_the_items_are_refused_and_nothing_is_appended() {
        let mut out = b"<".to_vec();
        assert!(gather_words(&[[0], [3]], &[[1_u8; 2]; 3], &mut out).is_err());
        assert!(gather_words(&[[0xff; 8]], &[[1_u8; 2]; 3], &mut out).is_err());
        assert!(gather_words(&[[0]], &[] as &[[u8; 2]], &mut out).is_err());
        let mut ends = Vec::<i32>::new();
        let items = Items::new([b"a".as_slice(), b"bc"].into_iter()).unwrap();
        assert!(items.gather(&[[1, 0], [2, 0]], &mut out, &mut ends).is_err());
        assert!(items.gather(&[[0xff; 8]], &mut out, &mut ends).is_err());
        assert!(Items::default().gather(&[[0]], &mut out, &mut ends).is_err());
        assert!(Items::default().gather(&[] as &[[u8; 1]], &mut out, &mut ends).is_ok());
        let equal = Items::new([b"ab".as_slice(), b"bc"].into_iter()).unwrap();
        assert!(equal.gather(&[[1], [2]], &mut out, &mut ends).is_err());
        assert_eq!((out.as_slice(), ends.len()), (b"<".as_slice(), 0));
        assert!(Items::new([[0; LONGEST + 1].as_slice()].into_iter()).is_none());
        let cut = Items::new([[0xc3].as_slice(), &[0xa9]].into_iter()).unwrap();
        assert!(!cut.is_text(), "a character of two items");
        let many = MOST_BYTES / SHORT + 2;
        let short = [[0; SHORT].as_slice()];
        assert!(Items::new(short.into_iter().cycle().take(many)).is_some());
        let long = [[0; SHORT + 1].as_slice()];
        assert!(Items::new(long.into_iter().chain(short.into_iter().cycle()).take(many)).is_none());
        assert!(Items::new(short.into_iter().cycle().take(many).chain(long)).is_none());
    }
}
