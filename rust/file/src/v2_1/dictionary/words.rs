//! Numbers for values of one width: a table with open addresses, at most a third full.

/// Words whose slots, and then the items in them, are brought near together before any of them is looked up.
const BATCH: usize = 64;

/// The numbers of words and the distinct ones; nothing where there are more than `limit`.
pub(super) fn numbered_words<const WIDTH: usize>(bytes: &[u8], limit: usize) -> Option<(Vec<u32>, Vec<u8>)> {
    let (words, _) = bytes.as_chunks::<WIDTH>();
    let mut items: Vec<[u8; WIDTH]> = Vec::new();
    let mut numbers = Vec::with_capacity(words.len());
    let mut slots = Slots::new(1024);
    let (mut hashes, mut firsts) = ([0; BATCH], [Slots::FREE; BATCH]);
    for words in words.chunks(BATCH) {
        for ((hash, first), word) in hashes.iter_mut().zip(&mut firsts).zip(words) {
            *hash = mixed(word);
            *first = slots.first(*hash);
        }
        let mut touched = 0;
        for first in &firsts {
            touched |= items
                .get(*first as usize)
                .and_then(|item| item.first())
                .copied()
                .unwrap_or(0);
        }
        std::hint::black_box(touched);
        for ((hash, first), word) in hashes.iter().zip(&firsts).zip(words) {
            if items.get(*first as usize) == Some(word) {
                numbers.push(*first);
                continue;
            }
            let found = slots.find(&items, word, *hash);
            let number = match found {
                Ok(number) => number,
                Err(slot) => {
                    if items.len() >= limit {
                        return None;
                    }
                    let number = u32::try_from(items.len()).ok().filter(|number| *number < Slots::FREE)?;
                    items.push(*word);
                    slots.put(slot, number);
                    if items.len() * 3 > slots.numbers.len() {
                        slots = Slots::of(&items, slots.numbers.len() * 4);
                    }
                    number
                }
            };
            numbers.push(number);
        }
    }
    Some((numbers, items.concat()))
}

/// Where the numbers of words are found by the words.
struct Slots {
    numbers: Vec<u32>,
    shift: u32,
}

impl Slots {
    const FREE: u32 = u32::MAX;

    /// `size` is a power of two.
    fn new(size: usize) -> Slots {
        Slots {
            numbers: vec![Self::FREE; size],
            shift: 64 - size.trailing_zeros(),
        }
    }

    fn of<const WIDTH: usize>(items: &[[u8; WIDTH]], size: usize) -> Slots {
        let mut slots = Slots::new(size);
        for (number, item) in (0..).zip(items) {
            if let Err(slot) = slots.find(items, item, mixed(item)) {
                slots.put(slot, number);
            }
        }
        slots
    }

    fn put(&mut self, slot: usize, number: u32) {
        if let Some(place) = self.numbers.get_mut(slot) {
            *place = number;
        }
    }

    fn place(&self, hash: u64) -> usize {
        usize::try_from(hash >> self.shift).unwrap_or(0)
    }

    /// What is in the slot where a word of this hash is looked for first.
    #[inline(always)]
    fn first(&self, hash: u64) -> u32 {
        self.numbers.get(self.place(hash)).copied().unwrap_or(Self::FREE)
    }

    /// The number of a word, by its hash, or the slot where it goes.
    #[inline(always)]
    fn find<const WIDTH: usize>(
        &self,
        items: &[[u8; WIDTH]],
        word: &[u8; WIDTH],
        hash: u64,
    ) -> std::result::Result<u32, usize> {
        let mut slot = self.place(hash);
        loop {
            match self.numbers.get(slot) {
                Some(&number) if number != Self::FREE => {
                    if items.get(number as usize) == Some(word) {
                        return Ok(number);
                    }
                }
                _ => return Err(slot),
            }
            slot = (slot + 1) & (self.numbers.len() - 1);
        }
    }
}

/// A hash whose highest bits depend on all of a word's.
#[inline(always)]
fn mixed<const WIDTH: usize>(word: &[u8; WIDTH]) -> u64 {
    let mut hash = ODD;
    let (parts, rest) = word.as_chunks::<8>();
    for part in parts {
        hash = folded(u64::from_le_bytes(*part) ^ hash);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
        hash = folded(u64::from_le_bytes(last) ^ hash);
    }
    hash.wrapping_mul(ODD)
}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Both halves of a product.
#[inline(always)]
fn folded(part: u64) -> u64 {
    let product = u128::from(part) * u128::from(ODD);
    #[allow(clippy::cast_possible_truncation)] // Both halves are used.
    let folded = (product >> 64) as u64 ^ product as u64;
    folded
}

#[cfg(test)]
mod tests {
    use super::super::encode::number;
    use super::*;

    #[test]
    fn test_words_are_numbered_in_the_order_in_which_they_come() {
        for (len, distinct) in [(0, 1), (1, 1), (5000, 7), (30_000, 9_000)] {
            let words: Vec<u64> = (0..len)
                .map(|i: u64| (i * 7919 % distinct).wrapping_mul(0x1_0000_0001))
                .collect();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let expected = number(words.len(), |index| words.get(index).copied(), usize::MAX).unwrap();
            let (numbers, items) = numbered_words::<8>(&bytes, words.len()).unwrap();
            let items: Vec<u64> = items
                .chunks(8)
                .map(|b| u64::from_le_bytes(b.try_into().unwrap()))
                .collect();
            assert_eq!((&numbers, &items), (&expected.numbers, &expected.items));
            let few = items.len().saturating_sub(1);
            assert!(words.is_empty() || numbered_words::<8>(&bytes, few).is_none());
            assert!(numbered_words::<8>(&bytes, items.len()).is_some());
        }
    }
}
