//! Values looked up by their numbers: the items of a dictionary, of one width or of any length.
//!
//! All numbers are checked before the first value is written, so that the loops over them ask nothing. What is beyond an item that is
//! copied in whole words is overwritten by the next one: a copy of the length that an item has would be a branch that nobody can predict.
#![allow(unsafe_code)]

use crate::error::{CodecError, Result};

/// How many items of any length are located before they are copied: so many reads of memory are under way at once.
const BATCH: usize = 128;

/// The longest item that is copied as if all were as long.
pub const LONGEST: usize = 64;

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
    is_ascii: bool,
}

impl Items {
    /// Items one after the other. `None` where one is longer than [`LONGEST`], or where they have more bytes than 32 bits count.
    pub fn new<'a>(items: impl Iterator<Item = &'a [u8]>) -> Option<Items> {
        let mut all = Items::default();
        for item in items {
            if item.len() > LONGEST {
                return None;
            }
            let span = (u32::try_from(all.bytes.len()).ok()?, u32::try_from(item.len()).ok()?);
            all.spans.push(span);
            all.longest = all.longest.max(item.len());
            all.bytes.extend_from_slice(item);
        }
        all.is_ascii = all.bytes.is_ascii();
        all.bytes.resize(all.bytes.len() + LONGEST, 0);
        Some(all)
    }

    /// Whether all items are ASCII.
    pub fn is_ascii(&self) -> bool {
        self.is_ascii
    }

    /// Bytes that they take.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.spans.len() * size_of::<(u32, u32)>()
    }

    /// Appends items by their numbers; `end` is called with the end of each in `out`.
    pub fn gather<N: Number>(&self, numbers: &[N], out: &mut Vec<u8>, end: impl FnMut(usize)) -> Result<()> {
        check(numbers, self.spans.len())?;
        match self.longest {
            0..=8 => self.copy::<N, 8>(numbers, out, end),
            9..=16 => self.copy::<N, 16>(numbers, out, end),
            17..=32 => self.copy::<N, 32>(numbers, out, end),
            _ => self.copy::<N, LONGEST>(numbers, out, end),
        }
        Ok(())
    }

    /// `STEP` is at least the length of the longest item.
    fn copy<N: Number, const STEP: usize>(&self, numbers: &[N], out: &mut Vec<u8>, mut end: impl FnMut(usize)) {
        debug_assert!(STEP >= self.longest && STEP <= LONGEST);
        let mut spans = [(0, 0); BATCH];
        for numbers in numbers.chunks(BATCH) {
            let (start, reserved) = (out.len(), numbers.len() * STEP);
            out.reserve(reserved);
            let spare = out.as_mut_ptr().wrapping_add(start);
            let mut touched = 0;
            for (span, number) in spans.iter_mut().zip(numbers) {
                // SAFETY: `gather` checked all numbers against the number of spans.
                *span = *unsafe { self.spans.get_unchecked(number.place()) };
                // Brings the item near while the others are located.
                touched |= self.bytes.get(span.0 as usize).copied().unwrap_or(0);
            }
            std::hint::black_box(touched);
            let mut written = 0;
            for (from, length) in spans.iter().take(numbers.len()) {
                debug_assert!(written + STEP <= reserved && *from as usize + STEP <= self.bytes.len());
                // SAFETY: `new` made each span: `from` is at most the number of bytes before `LONGEST` more were added, which is at least
                // `STEP`. `STEP` bytes are reserved for each number of the batch, and `written` is the sum of the lengths of those
                // before this one, which are at most `longest` and so at most `STEP`. The two lie in different vectors.
                unsafe {
                    let item = self.bytes.as_ptr().add(*from as usize).cast::<[u8; STEP]>();
                    spare.add(written).cast::<[u8; STEP]>().write(item.read());
                }
                written += *length as usize;
                end(start + written);
            }
            // SAFETY: each write starts where the item before it ends, and writes at least the item: the first `written` bytes are
            // initialised; they are at most `reserved`.
            unsafe { out.set_len(start + written) };
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
            longest in prop::sample::select(vec![0_usize, 1, 8, 9, 16, 17, 32, 33, 64]),
            lengths in prop::collection::vec(any::<prop::sample::Index>(), 1..300),
            numbers in prop::collection::vec(any::<u16>(), 0..1000),
            ascii in any::<bool>(),
        ) {
            let byte = |number: usize| if ascii { number as u8 & 0x7f } else { number as u8 | 0x80 };
            let items: Vec<Vec<u8>> = lengths
                .iter()
                .enumerate()
                .map(|(number, length)| vec![byte(number); length.index(longest + 1)])
                .collect();
            let numbers: Vec<u16> = numbers.iter().map(|number| number % items.len() as u16).collect();
            let all = Items::new(items.iter().map(Vec::as_slice)).unwrap();
            prop_assert_eq!(all.is_ascii(), items.iter().all(|item| item.is_ascii()));
            let (mut out, mut ends) = (b"<".to_vec(), Vec::new());
            let stored: Vec<[u8; 2]> = numbers.iter().map(|number| number.to_le_bytes()).collect();
            all.gather(&stored, &mut out, |end| ends.push(end)).unwrap();
            let (mut expected, mut expected_ends) = (b"<".to_vec(), Vec::new());
            for number in &numbers {
                expected.extend_from_slice(&items[usize::from(*number)]);
                expected_ends.push(expected.len());
            }
            prop_assert_eq!((&out, ends), (&expected, expected_ends));
            let wide: Vec<[u8; 8]> = numbers.iter().map(|number| u64::from(*number).to_le_bytes()).collect();
            let mut out = b"<".to_vec();
            all.gather(&wide, &mut out, |_| {}).unwrap();
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
        let items = Items::new([b"a".as_slice(), b"bc"].into_iter()).unwrap();
        assert!(items.gather(&[[1, 0], [2, 0]], &mut out, |_| {}).is_err());
        assert!(items.gather(&[[0xff; 8]], &mut out, |_| {}).is_err());
        assert!(Items::default().gather(&[[0]], &mut out, |_| {}).is_err());
        assert!(Items::default().gather(&[] as &[[u8; 1]], &mut out, |_| {}).is_ok());
        assert_eq!(out, b"<");
        assert!(Items::new([[0; LONGEST + 1].as_slice()].into_iter()).is_none());
    }
}
