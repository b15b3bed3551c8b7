//! Numbers for values of any length: a table with open addresses, at most half full.

use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;

use super::super::values::VariableWidth;

/// Values whose slots are brought near together, before any of them is looked up.
const BATCH: usize = 64;

/// The numbers of values, and the distinct ones one after the other.
#[derive(Debug, Default, PartialEq)]
pub(super) struct NumberedTexts {
    pub(super) numbers: Vec<u32>,
    /// Where each of the distinct ones starts, and the last one ends.
    pub(super) offsets: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

impl NumberedTexts {
    /// The numbers of values; nothing where there are more than `limit` distinct ones.
    pub(super) fn of(values: &VariableWidth, limit: usize) -> Option<NumberedTexts> {
        let hasher = DefaultHashBuilder::default();
        let mut found = NumberedTexts {
            numbers: Vec::with_capacity(values.len()),
            offsets: vec![0],
            bytes: Vec::new(),
        };
        let mut slots = Slots::new(1024);
        let mut hashes = [0_u32; BATCH];
        for start in (0..values.len()).step_by(BATCH) {
            let indices = start..values.len().min(start + BATCH);
            let mut touched = 0;
            for (hash, index) in hashes.iter_mut().zip(indices.clone()) {
                #[allow(clippy::cast_possible_truncation)] // The high half.
                let high = (hasher.hash_one(values.get(index)) >> 32) as u32;
                *hash = high;
                touched |= slots.first(high);
            }
            // The items that they most likely are: one after the other they would be waited for.
            for hash in hashes.iter().take(indices.len()) {
                touched |= u64::from(found.first_byte(slots.first(*hash)));
            }
            std::hint::black_box(touched);
            for (hash, index) in hashes.iter().zip(indices) {
                let value = values.get(index);
                let number = match slots.find(*hash, |number| found.get(number) == Some(value)) {
                    Ok(number) => number,
                    Err(slot) => {
                        let number = found.add(value, limit)?;
                        slots.put(slot, *hash, number);
                        slots.grow(found.offsets.len());
                        number
                    }
                };
                found.numbers.push(number);
            }
        }
        Some(found)
    }

    /// A byte of the item whose number is in a slot.
    fn first_byte(&self, held: u64) -> u8 {
        #[allow(clippy::cast_possible_truncation)] // The number.
        let start = self.offsets.get(held as u32 as usize);
        start.and_then(|start| self.bytes.get(*start)).copied().unwrap_or(0)
    }

    fn get(&self, number: u32) -> Option<&[u8]> {
        let number = number as usize;
        self.bytes
            .get(*self.offsets.get(number)?..*self.offsets.get(number.checked_add(1)?)?)
    }

    fn add(&mut self, value: &[u8], limit: usize) -> Option<u32> {
        let number = self.offsets.len() - 1;
        if number >= limit {
            return None;
        }
        self.bytes.extend_from_slice(value);
        self.offsets.push(self.bytes.len());
        u32::try_from(number).ok().filter(|number| *number < u32::MAX)
    }
}

/// In each slot the half of a hash and a number: most values that differ are told apart without a look at their bytes.
struct Slots {
    slots: Vec<u64>,
    shift: u32,
}

impl Slots {
    const FREE: u64 = u64::MAX;

    /// `size` is a power of two, at most 2^32.
    fn new(size: usize) -> Slots {
        Slots {
            slots: vec![Self::FREE; size],
            shift: 32 - size.trailing_zeros(),
        }
    }

    fn place(&self, hash: u32) -> usize {
        hash.checked_shr(self.shift).unwrap_or(0) as usize
    }

    /// What is in the slot where a hash is looked for first.
    fn first(&self, hash: u32) -> u64 {
        self.slots.get(self.place(hash)).copied().unwrap_or(0)
    }

    /// The number for which `is_it` says so, or the slot where a new one goes.
    #[inline(always)]
    fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mut slot = self.place(hash);
        loop {
            match self.slots.get(slot) {
                Some(&held) if held != Self::FREE => {
                    #[allow(clippy::cast_possible_truncation)] // Its halves.
                    let (theirs, number) = ((held >> 32) as u32, held as u32);
                    if theirs == hash && is_it(number) {
                        return Ok(number);
                    }
                }
                _ => return Err(slot),
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    fn put(&mut self, slot: usize, hash: u32, number: u32) {
        if let Some(place) = self.slots.get_mut(slot) {
            *place = u64::from(hash) << 32 | u64::from(number);
        }
    }

    /// Makes room for `count` numbers.
    fn grow(&mut self, count: usize) {
        if count * 2 <= self.slots.len() || self.shift < 2 {
            return;
        }
        let mut larger = Slots::new(self.slots.len() * 4);
        for held in self.slots.iter().filter(|held| **held != Self::FREE) {
            #[allow(clippy::cast_possible_truncation)] // Its halves.
            let (hash, number) = ((held >> 32) as u32, *held as u32);
            if let Err(slot) = larger.find(hash, |_| false) {
                larger.put(slot, hash, number);
            }
        }
        *self = larger;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::encode::number;
    use super::*;

    fn texts(all: &[Vec<u8>]) -> VariableWidth {
        let mut offsets = vec![0];
        offsets.extend(all.iter().scan(0, |end, text| {
            *end += text.len();
            Some(*end)
        }));
        VariableWidth {
            large: false,
            offsets,
            bytes: all.concat().into(),
        }
    }

    fn check(all: &[Vec<u8>]) {
        let values = texts(all);
        let expected = number(values.len(), |index| Some(values.get(index)), usize::MAX).unwrap();
        let found = NumberedTexts::of(&values, usize::MAX).unwrap();
        let count = expected.items.len();
        assert_eq!(found.numbers, expected.numbers);
        assert_eq!(found.offsets.len(), count + 1);
        for (number, item) in (0..).zip(&expected.items) {
            assert_eq!(found.get(number), Some(*item));
        }
        assert_eq!(NumberedTexts::of(&values, count), Some(found));
        if count > 0 {
            assert_eq!(NumberedTexts::of(&values, count - 1), None);
        }
    }

    #[test]
    fn test_many_values_are_numbered_in_the_order_in_which_they_come() {
        check(&[]);
        let all: Vec<Vec<u8>> = (0..40_000_u32)
            .map(|row| format!("item {}", row.wrapping_mul(7919) % 9_973).into_bytes())
            .collect();
        check(&all);
    }

    proptest! {
        #[test]
        fn test_values_are_numbered_in_the_order_in_which_they_come(
            all in prop::collection::vec(prop::collection::vec(0..3_u8, 0..4), 0..400),
        ) {
            check(&all);
        }
    }
}
