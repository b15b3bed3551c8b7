//! The builder of a validity bitmap.

use std::ops::Range;

use arrow_buffer::{BooleanBufferBuilder, NullBuffer};

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

    /// Adds `count` flags of words, the lowest bit first. The words must be there.
    pub(crate) fn append_words(&mut self, words: &[u64], count: usize) {
        if self.flags.is_none() && esker_codec::levels::count(words) == count {
            return self.append_valid(count);
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.append_packed(0..count, &bytes);
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
        fn test_words_become_the_flags_that_they_say_one_by_one(
            before in 0_usize..70,
            pages in prop::collection::vec(prop::collection::vec(prop::bool::weighted(0.9), 0..300), 1..4),
        ) {
            let mut validity = ValidityBuilder::default();
            validity.append_valid(before);
            let mut expected = vec![true; before];
            for page in &pages {
                let word = |flags: &[bool]| flags.iter().rev().fold(0, |word, flag| word << 1 | u64::from(*flag));
                let words: Vec<u64> = page.chunks(64).map(word).collect();
                validity.append_words(&words, page.len());
                expected.extend(page);
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
