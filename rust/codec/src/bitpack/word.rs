//! The words that values are packed from.

use std::fmt::Debug;
use std::ops::{BitAnd, BitOr, Not, Shl, Shr};

/// The bytes of a row: one word of each lane.
pub(super) const ROW: usize = 128;

/// An unsigned integer that values are packed from: u8, u16, u32 or u64.
pub trait Word:
    Copy
    + Default
    + Debug
    + Eq
    + Send
    + Sync
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Not<Output = Self>
    + Shl<usize, Output = Self>
    + Shr<usize, Output = Self>
    + private::Sealed
    + 'static
{
    /// Bits in a word, and rows in a block.
    const BITS: usize;
    /// Words in a row.
    const LANES: usize = super::BLOCK / Self::BITS;
    /// A word as little-endian bytes.
    type Bytes: Copy + Default + AsRef<[u8]> + Send + Sync + 'static;

    /// The whole words of some bytes.
    fn words(bytes: &[u8]) -> &[Self::Bytes];
    /// The whole words of some bytes, to write.
    fn words_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];
    /// The word of little-endian bytes.
    fn from_bytes(bytes: Self::Bytes) -> Self;
    /// The little-endian bytes of a word.
    fn to_bytes(self) -> Self::Bytes;
    /// Zero bits above the highest one.
    fn leading_zeros(self) -> usize;
    /// The word of the lowest bits of a number.
    fn from_low_bits(number: u64) -> Self;
    /// The word as a number; `usize::MAX` where it is larger.
    fn to_usize(self) -> usize;
}

mod private {
    /// A type without padding, of which all bits are valid: `super::super::block` relies on it.
    pub trait Sealed {}
}

macro_rules! word {
    ($word:ty) => {
        impl private::Sealed for $word {}

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
            fn from_low_bits(number: u64) -> Self {
                number as $word
            }
            #[inline(always)]
            fn to_usize(self) -> usize {
                usize::try_from(self).unwrap_or(usize::MAX)
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
