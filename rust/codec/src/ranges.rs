//! Which numbers lie in a range: a bit for each, 64 to a word, the first one lowest.
#![allow(unsafe_code)]

/// Numbers that a word has bits of.
const WORD: usize = 64;

/// An integer that is compared.
pub trait Number: Copy + Ord + sealed::Distance {}

mod sealed {
    /// How far a number is from another one that is no larger.
    pub trait Distance: Sized {
        type Unsigned: Copy + Ord;

        /// Counted on beyond the largest number: then it is farther than any of the range.
        fn distance_from(self, low: Self) -> Self::Unsigned;

        /// The bits of 64 numbers, by the instructions for numbers of this size.
        ///
        /// # Safety
        ///
        /// The processor must have AVX2.
        #[cfg(target_arch = "x86_64")]
        unsafe fn word_avx2(numbers: &[Self; super::WORD], low: Self, span: Self::Unsigned) -> u64;
    }
}

/// A bit for each number from `low` to `high`, both among them; bits behind the last number are 0.
pub fn within<T: Number>(numbers: &[T], low: T, high: T) -> Vec<u64> {
    if low > high {
        return vec![0; numbers.len().div_ceil(WORD)];
    }
    let span = high.distance_from(low);
    let (whole, rest) = numbers.as_chunks::<WORD>();
    let mut words = Vec::with_capacity(whole.len() + 1);
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as was just asked.
        unsafe { words_avx2(whole, low, span, &mut words) };
    }
    // Those that are left: all, where there are no such instructions.
    let left = whole.get(words.len()..).unwrap_or_default();
    words.extend(left.iter().map(|numbers| word(numbers, low, span)));
    if !rest.is_empty() {
        words.push(word(rest, low, span));
    }
    words
}

/// The scalar baseline: the bits of 64 numbers at most.
fn word<T: Number>(numbers: &[T], low: T, span: T::Unsigned) -> u64 {
    let bits = numbers.iter().enumerate();
    bits.fold(0, |word, (place, number)| {
        word | u64::from(number.distance_from(low) <= span) << place
    })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn words_avx2<T: Number>(whole: &[[T; WORD]], low: T, span: T::Unsigned, words: &mut Vec<u64>) {
    words.extend(whole.iter().map(|numbers| {
        // SAFETY: whoever calls this has AVX2.
        unsafe { T::word_avx2(numbers, low, span) }
    }));
}

macro_rules! number {
    ($signed:ty, $unsigned:ty, $word:ident) => {
        number!(of $signed, $unsigned, cast_unsigned, $word);
        number!(of $unsigned, $unsigned, from_unsigned, $word);
    };
    (of $number:ty, $unsigned:ty, $cast:ident, $word:ident) => {
        impl Number for $number {}

        impl sealed::Distance for $number {
            type Unsigned = $unsigned;

            #[inline(always)]
            fn distance_from(self, low: Self) -> $unsigned {
                number!(unsigned $cast, self.wrapping_sub(low))
            }

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn word_avx2(numbers: &[Self; WORD], low: Self, span: $unsigned) -> u64 {
                // SAFETY: the caller has AVX2, and integers of one size are the same bytes.
                unsafe {
                    $word(
                        &*numbers.as_ptr().cast::<[$unsigned; WORD]>(),
                        number!(unsigned $cast, low),
                        span,
                    )
                }
            }
        }
    };
    (unsigned cast_unsigned, $number:expr) => {
        ($number).cast_unsigned()
    };
    (unsigned from_unsigned, $number:expr) => {
        $number
    };
}

number!(i8, u8, word_of_8);
number!(i16, u16, word_of_16);
number!(i32, u32, word_of_32);
number!(i64, u64, word_of_64);

/// Numbers that compare as signed ones as these do as unsigned ones: the lowest one for 0.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn word_of_64(numbers: &[u64; WORD], low: u64, span: u64) -> u64 {
    use std::arch::x86_64::{
        _mm256_castsi256_pd, _mm256_cmpgt_epi64, _mm256_loadu_si256, _mm256_movemask_pd, _mm256_set1_epi64x,
        _mm256_sub_epi64,
    };
    const SIGN: u64 = 1 << 63;
    let low = _mm256_set1_epi64x(low.wrapping_add(SIGN).cast_signed());
    let span = _mm256_set1_epi64x(span.wrapping_add(SIGN).cast_signed());
    let (fours, _) = numbers.as_chunks::<4>();
    let beyond = fours.iter().enumerate().fold(0, |word, (at, four)| {
        // SAFETY: four numbers of 8 bytes are the bytes of a register, and are loaded from wherever they are.
        let four = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
        let beyond = _mm256_cmpgt_epi64(_mm256_sub_epi64(four, low), span);
        let bits = _mm256_movemask_pd(_mm256_castsi256_pd(beyond)).cast_unsigned();
        word | u64::from(bits) << (4 * at)
    });
    !beyond
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn word_of_32(numbers: &[u32; WORD], low: u32, span: u32) -> u64 {
    use std::arch::x86_64::{
        _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_loadu_si256, _mm256_min_epu32, _mm256_movemask_ps,
        _mm256_set1_epi32, _mm256_sub_epi32,
    };
    let low = _mm256_set1_epi32(low.cast_signed());
    let span = _mm256_set1_epi32(span.cast_signed());
    let (eights, _) = numbers.as_chunks::<8>();
    eights.iter().enumerate().fold(0, |word, (at, eight)| {
        // SAFETY: eight numbers of 4 bytes are the bytes of a register, and are loaded from wherever they are.
        let eight = unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) };
        let distance = _mm256_sub_epi32(eight, low);
        let within = _mm256_cmpeq_epi32(_mm256_min_epu32(distance, span), distance);
        let bits = _mm256_movemask_ps(_mm256_castsi256_ps(within)).cast_unsigned();
        word | u64::from(bits) << (8 * at)
    })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn word_of_16(numbers: &[u16; WORD], low: u16, span: u16) -> u64 {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi16, _mm256_loadu_si256, _mm256_min_epu16, _mm256_movemask_epi8, _mm256_packs_epi16,
        _mm256_permute4x64_epi64, _mm256_set1_epi16, _mm256_sub_epi16,
    };
    let low = _mm256_set1_epi16(low.cast_signed());
    let span = _mm256_set1_epi16(span.cast_signed());
    let at = numbers.as_ptr().cast::<__m256i>();
    // SAFETY: 64 numbers of 2 bytes are the bytes of four registers, and are loaded from wherever they are.
    let lanes = unsafe {
        [
            _mm256_loadu_si256(at),
            _mm256_loadu_si256(at.add(1)),
            _mm256_loadu_si256(at.add(2)),
            _mm256_loadu_si256(at.add(3)),
        ]
    };
    let [first, second, third, fourth] = lanes.map(|lane| {
        let distance = _mm256_sub_epi16(lane, low);
        _mm256_cmpeq_epi16(_mm256_min_epu16(distance, span), distance)
    });
    // Halves of registers are packed with each other: the order of their quarters is 0, 2, 1, 3 then.
    let lower = _mm256_permute4x64_epi64::<0b1101_1000>(_mm256_packs_epi16(first, second));
    let upper = _mm256_permute4x64_epi64::<0b1101_1000>(_mm256_packs_epi16(third, fourth));
    let bits = |bytes| u64::from(_mm256_movemask_epi8(bytes).cast_unsigned());
    bits(lower) | bits(upper) << 32
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn word_of_8(numbers: &[u8; WORD], low: u8, span: u8) -> u64 {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_set1_epi8,
        _mm256_sub_epi8,
    };
    let low = _mm256_set1_epi8(low.cast_signed());
    let span = _mm256_set1_epi8(span.cast_signed());
    let at = numbers.as_ptr().cast::<__m256i>();
    // SAFETY: 64 bytes are the bytes of two registers, and are loaded from wherever they are.
    let lanes = unsafe { [_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1))] };
    let [lower, upper] = lanes.map(|lane| {
        let distance = _mm256_sub_epi8(lane, low);
        let within = _mm256_cmpeq_epi8(_mm256_min_epu8(distance, span), distance);
        u64::from(_mm256_movemask_epi8(within).cast_unsigned())
    });
    lower | upper << 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether numbers lie in a range, asked of each by itself.
    fn asked<T: Number>(numbers: &[T], low: T, high: T) -> Vec<u64> {
        let words = numbers.chunks(WORD).map(|numbers| {
            let is = |number: &T| (low..=high).contains(number);
            numbers
                .iter()
                .rev()
                .fold(0, |word, number| word << 1 | u64::from(is(number)))
        });
        words.collect()
    }

    macro_rules! same {
        ($test:ident, $number:ty) => {
            proptest! {
                #[test]
                fn $test(
                    some in proptest::collection::vec(any::<$number>(), 0..300),
                    low in any::<$number>(),
                    high in any::<$number>(),
                    cut in 0_usize..6,
                ) {
                    // Bounds that numbers are equal to, and the ends of the type.
                    let mut numbers = some;
                    numbers.extend([low, high, low.wrapping_sub(1), high.wrapping_add(1), <$number>::MIN, <$number>::MAX]);
                    numbers.rotate_left(cut);
                    let numbers = &numbers[cut.min(numbers.len())..];
                    for (low, high) in [(low, high), (low, low), (<$number>::MIN, high), (low, <$number>::MAX), (<$number>::MIN, <$number>::MAX)] {
                        let expected = asked(numbers, low, high);
                        prop_assert_eq!(&within(numbers, low, high), &expected);
                        if low <= high {
                            let span = sealed::Distance::distance_from(high, low);
                            let scalar: Vec<u64> = numbers.chunks(WORD).map(|numbers| word(numbers, low, span)).collect();
                            prop_assert_eq!(&scalar, &expected);
                        }
                    }
                }
            }
        };
    }

    same!(test_i8, i8);
    same!(test_u8, u8);
    same!(test_i16, i16);
    same!(test_u16, u16);
    same!(test_i32, i32);
    same!(test_u32, u32);
    same!(test_i64, i64);
    same!(test_u64, u64);
}
