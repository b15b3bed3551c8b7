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

    /// Adds a flag for each of `n` values.
    pub(crate) fn append_with(&mut self, n: usize, valid: impl Fn(usize) -> bool) {
        let flags = self.flags();
        let mut at = 0;
        while at < n {
            let count = (n - at).min(64);
            let mut word = 0_u64;
            for bit in 0..count {
                word |= u64::from(valid(at + bit)) << bit;
            }
            flags.append_packed_range(0..count, &word.to_le_bytes());
            at += count;
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
