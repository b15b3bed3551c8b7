//! Bitmaps, least significant bit first, with rank and select.

use std::ops::Range;

use bytes::Bytes;

/// Bits that one entry of a [`RankTable`] covers.
const BLOCK_BITS: u64 = 4096;

/// The first `len` bits of some bytes. Trailing bits of the last byte are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bitmap {
    bytes: Bytes,
    len: u64,
}

fn byte_of(bit: u64) -> usize {
    usize::try_from(bit / 8).unwrap_or(usize::MAX)
}

impl Bitmap {
    /// `None` if there are too few bytes.
    pub fn new(bytes: Bytes, len: u64) -> Option<Self> {
        let size = usize::try_from(len.div_ceil(8)).ok()?;
        (bytes.len() >= size).then(|| Self {
            bytes: bytes.slice(..size),
            len,
        })
    }

    /// `len` bits of which those at `set` are 1.
    pub fn from_set(set: impl Iterator<Item = u64>, len: u64) -> Self {
        let mut bytes = vec![0u8; byte_of(len.saturating_add(7))];
        for bit in set {
            if let Some(byte) = bytes.get_mut(byte_of(bit)) {
                *byte |= 1 << (bit % 8);
            }
        }
        let bytes = Bytes::from(bytes);
        Self { bytes, len }
    }

    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn contains(&self, bit: u64) -> bool {
        bit < self.len
            && self
                .bytes
                .get(byte_of(bit))
                .is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }

    /// How many bits are set in `range`, which starts at a multiple of 8.
    fn count_from_byte(&self, range: Range<u64>) -> u64 {
        let end = range.end.min(self.len);
        let (first, last) = (byte_of(range.start), byte_of(end));
        let whole = self.bytes.get(first..last).unwrap_or_default();
        let mut words = whole.chunks_exact(8);
        let mut count = 0;
        for word in words.by_ref() {
            count += u64::from(word.try_into().map_or(0, u64::from_le_bytes).count_ones());
        }
        count += words
            .remainder()
            .iter()
            .map(|byte| u64::from(byte.count_ones()))
            .sum::<u64>();
        if !end.is_multiple_of(8) && end > range.start {
            let rest = self.bytes.get(last).copied().unwrap_or(0) & ((1u8 << (end % 8)) - 1);
            count += u64::from(rest.count_ones());
        }
        count
    }

    /// How many bits are set.
    pub fn count(&self) -> u64 {
        self.count_from_byte(0..self.len)
    }

    /// How many bits are set below `bit`.
    pub fn rank(&self, bit: u64) -> u64 {
        self.count_from_byte(0..bit)
    }

    /// The places of the set bits, from the `skip`-th on.
    pub fn ones(&self, skip: u64) -> impl Iterator<Item = u64> + '_ {
        let mut rest = skip;
        let mut start = 0usize;
        for byte in self.bytes.iter() {
            let ones = u64::from(byte.count_ones());
            if ones > rest {
                break;
            }
            rest -= ones;
            start += 1;
        }
        let bytes = self.bytes.get(start..).unwrap_or_default();
        let skip = usize::try_from(rest).unwrap_or(usize::MAX);
        let places = bytes.iter().zip(start as u64..).flat_map(|(byte, index)| {
            let byte = *byte;
            (0..8)
                .filter(move |bit| byte >> bit & 1 == 1)
                .map(move |bit| index * 8 + bit)
        });
        places.skip(skip).take_while(|bit| *bit < self.len)
    }
}

/// The number of set bits before each block of a bitmap, so that a rank counts one block and not the whole bitmap.
#[derive(Debug, Clone, Default)]
pub(crate) struct RankTable(Vec<u32>);

impl RankTable {
    /// Empty for a bitmap of one block, which needs no table.
    pub fn new(bitmap: &Bitmap) -> Self {
        let blocks = bitmap.len().div_ceil(BLOCK_BITS);
        if blocks <= 1 {
            return Self::default();
        }
        let mut sum = 0;
        let before = (0..blocks).map(|block| {
            let start = block * BLOCK_BITS;
            let before = sum;
            sum += bitmap.count_from_byte(start..start + BLOCK_BITS);
            u32::try_from(before).unwrap_or(u32::MAX)
        });
        Self(before.collect())
    }

    /// How many bits of `bitmap` are set below `bit`.
    pub fn rank(&self, bitmap: &Bitmap, bit: u64) -> u64 {
        let block = usize::try_from(bit / BLOCK_BITS).unwrap_or(usize::MAX);
        match self.0.get(block) {
            Some(before) => u64::from(*before) + bitmap.count_from_byte(bit / BLOCK_BITS * BLOCK_BITS..bit),
            None => bitmap.rank(bit),
        }
    }

    pub fn memory(&self) -> usize {
        self.0.capacity() * size_of::<u32>()
    }
}
