//! The builder of a validity bitmap.

use std::ops::Range;

use arrow_buffer::{BooleanBufferBuilder, NullBuffer};

/// Flags that are packed at a time.
const BLOCK: usize = 1024;

/// Eight bytes of 0 or 1 as bits, the first one lowest: each is multiplied to its place in the highest byte.
pub(crate) fn pack(flags: [u8; 8]) -> u8 {
    let [.., highest] = u64::from_le_bytes(flags)
        .wrapping_mul(0x0102_0408_1020_4080)
        .to_le_bytes();
    highest
}

/// One bit per value; allocates nothing before the first null.
#[derive(Debug, Default)]
pub(crate) struct ValidityBuilder {
    valid_before: usize,
    flags: Option<BooleanBufferBuilder>,
}

impl ValidityBuilder {
    pub(crate) fn len(&self) -> usize {
        self.flags.as_ref().map_or(self.valid_before, BooleanBufferBuilder::len)
    }

    fn flags(&mut self) -> &mut BooleanBufferBuilder {
        let before = self.valid_before;
        self.flags.get_or_insert_with(|| {
            let mut flags = BooleanBufferBuilder::new(before.saturating_add(1024));
            flags.append_n(before, true);
            flags
        })
    }

    /// Adds `n` values that are there.
    pub(crate) fn append_valid(&mut self, n: usize) {
        match &mut self.flags {
            Some(flags) => flags.append_n(n, true),
            None => self.valid_before = self.valid_before.saturating_add(n),
        }
    }

    /// Adds flags.
    pub(crate) fn extend(&mut self, valid: impl Iterator<Item = bool>) {
        let flags = self.flags();
        let (mut word, mut count) = (0_u64, 0_usize);
        for valid in valid {
            word |= u64::from(valid) << count;
            count += 1;
            if count == 64 {
                flags.append_packed_range(0..64, &word.to_le_bytes());
                (word, count) = (0, 0);
            }
        }
        flags.append_packed_range(0..count, &word.to_le_bytes());
    }

    /// Adds a flag for each of some numbers, two little-endian bytes each: a block of them is compared and packed at a time.
    pub(crate) fn append_levels(&mut self, levels: &[[u8; 2]], is_valid: impl Fn(u16) -> bool) {
        let flags = self.flags();
        for block in levels.chunks(BLOCK) {
            let mut packed = [0_u8; BLOCK / 8];
            for (byte, levels) in packed.iter_mut().zip(block.chunks(8)) {
                let mut valid = [0_u8; 8];
                for (valid, level) in valid.iter_mut().zip(levels) {
                    *valid = u8::from(is_valid(u16::from_le_bytes(*level)));
                }
                *byte = pack(valid);
            }
            flags.append_packed_range(0..block.len(), &packed);
        }
    }

    /// Adds flags that are packed, least significant bit first. The bits must be there.
    pub(crate) fn append_packed(&mut self, range: Range<usize>, bits: &[u8]) {
        self.flags().append_packed_range(range, bits);
    }

    /// Adds the flags of `range` of another.
    pub(crate) fn append_range(&mut self, other: &ValidityBuilder, range: Range<usize>) {
        match &other.flags {
            Some(flags) => self.append_packed(range, flags.as_slice()),
            None => self.append_valid(range.len()),
        }
    }

    /// The nulls; none where everything is there.
    pub(crate) fn finish(self) -> Option<NullBuffer> {
        let mut flags = self.flags?;
        let nulls = NullBuffer::new(flags.finish());
        (nulls.null_count() > 0).then_some(nulls)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn test_levels_become_the_flags_that_they_say_one_by_one(
            before in 0_usize..70,
            pages in prop::collection::vec(prop::collection::vec(0_u16..4, 0..2500), 1..4),
        ) {
            let mut validity = ValidityBuilder::default();
            validity.append_valid(before);
            let mut expected = vec![true; before];
            for page in &pages {
                let levels: Vec<[u8; 2]> = page.iter().map(|level| level.to_le_bytes()).collect();
                validity.append_levels(&levels, |level| level < 2);
                expected.extend(page.iter().map(|level| *level < 2));
            }
            prop_assert_eq!(validity.len(), expected.len());
            let found = validity.finish();
            let found: Vec<bool> = match found {
                Some(nulls) => nulls.iter().collect(),
                None => vec![true; expected.len()],
            };
            prop_assert_eq!(found, expected);
        }
    }
}
