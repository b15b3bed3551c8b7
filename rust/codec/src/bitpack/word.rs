//! The words that values are packed from.

use std::fmt::Debug;
use std::ops::{BitAnd, BitOr, Not, Shl, Shr};

/// An unsigned integer that values are packed from: u8, u16, u32 or u64.
pub trait Word:
    Copy
    + Default
    + Debug
    + Eq
    + Send
    + Sync
    + Slot<Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Not<Output = Self>
    + Shl<usize, Output = Self>
    + Shr<usize, Output = Self>
    + 'static
{
    /// Bits in a word, and rows in a block.
    const BITS: usize;
    /// Words in a row.
    const LANES: usize = super::BLOCK / Self::BITS;
    /// A word as little-endian bytes.
    type Bytes: Copy + Default + AsRef<[u8]> + Slot<Self> + Send + Sync + 'static;

    /// The whole words of some bytes.
    fn words(bytes: &[u8]) -> &[Self::Bytes];
    /// The whole words of some bytes, to write.
    fn words_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];
    /// A word from its little-endian bytes.
    fn from_bytes(bytes: Self::Bytes) -> Self;
    /// The little-endian bytes of a word.
    fn to_bytes(self) -> Self::Bytes;
    /// Zero bits above the highest one.
    fn leading_zeros(self) -> usize;
    /// The word that holds a small number; the number's low bits where it is too large.
    fn from_usize(value: usize) -> Self;
    /// The word as a number; `usize::MAX` where it is larger.
    fn to_usize(self) -> usize;
}

/// A place for a word: the word itself, or its little-endian bytes.
pub trait Slot<W> {
    /// Writes the word.
    fn put(&mut self, word: W);
    /// Reads the word.
    fn take(&self) -> W;
}

macro_rules! word {
    ($word:ty) => {
        impl Word for $word {
            const BITS: usize = <$word>::BITS as usize;
            type Bytes = [u8; size_of::<$word>()];

            #[inline(always)]
            fn words(bytes: &[u8]) -> &[Self::Bytes] {
                bytes.as_chunks().0
            }
            #[inline(always)]
            fn words_mut(bytes: &mut [u8]) -> &mut [Self::Bytes] {
                bytes.as_chunks_mut().0
            }
            #[inline(always)]
            fn from_bytes(bytes: Self::Bytes) -> Self {
                <$word>::from_le_bytes(bytes)
            }
            #[inline(always)]
            fn to_bytes(self) -> Self::Bytes {
                self.to_le_bytes()
            }
            #[inline(always)]
            fn leading_zeros(self) -> usize {
                <$word>::leading_zeros(self) as usize
            }
            #[inline(always)]
            #[allow(clippy::cast_possible_truncation)] // As its documentation says.
            fn from_usize(value: usize) -> Self {
                value as $word
            }
            #[inline(always)]
            fn to_usize(self) -> usize {
                usize::try_from(self).unwrap_or(usize::MAX)
            }
        }

        impl Slot<$word> for $word {
            #[inline(always)]
            fn put(&mut self, word: $word) {
                *self = word;
            }
            #[inline(always)]
            fn take(&self) -> $word {
                *self
            }
        }

        impl Slot<$word> for [u8; size_of::<$word>()] {
            #[inline(always)]
            fn put(&mut self, word: $word) {
                *self = word.to_le_bytes();
            }
            #[inline(always)]
            fn take(&self) -> $word {
                <$word>::from_le_bytes(*self)
            }
        }
    };
}

word!(u8);
word!(u16);
word!(u32);
word!(u64);

/// The lowest `width` bits set.
#[inline(always)]
pub(crate) fn mask<W: Word>(width: usize) -> W {
    match width {
        0 => W::default(),
        width if width >= W::BITS => !W::default(),
        width => !(!W::default() << width),
    }
}
