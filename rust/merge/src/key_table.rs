//! A hash table of the source's keys.

use hashbrown::HashTable;

use crate::error::{MergeError, Result};
use crate::keys::{Key, Keys};

/// No further row.
const END: u32 = u32::MAX;

/// Where the keys of one batch begin among all.
#[derive(Debug)]
struct Part {
    first: u32,
    keys: Keys,
}

/// Rows by key, those of one key in their order.
#[derive(Debug, Default)]
pub struct KeyTable {
    parts: Vec<Part>,
    rows: u32,
    /// For each key its hash and its first row.
    heads: HashTable<(u64, u32)>,
    /// For each row the next one of the same key.
    next: Vec<u32>,
    filter: Filter,
}

/// A one-bit Bloom filter of the hashes: it fits in the processor's cache, so that most look-ups of absent keys are cheap.
#[derive(Debug, Default)]
struct Filter {
    words: Vec<u64>,
    shift: u32,
}

impl Filter {
    /// A filter for so many keys.
    fn new(keys: usize) -> Self {
        let bits = keys.saturating_mul(12).next_power_of_two().clamp(1 << 10, 1 << 30);
        Self {
            words: vec![0; bits / 64],
            shift: 64 - bits.trailing_zeros(),
        }
    }

    /// The word and the bit of a hash, from its middle bits: the upper ones chose the partition, the lower ones choose the place in the
    /// table.
    #[inline]
    fn place(&self, hash: u64) -> (usize, u64) {
        let bit = (hash << 16) >> self.shift;
        (usize::try_from(bit / 64).unwrap_or(0), 1 << (bit % 64))
    }

    fn insert(&mut self, hash: u64) {
        let (word, bit) = self.place(hash);
        if let Some(word) = self.words.get_mut(word) {
            *word |= bit;
        }
    }

    #[inline]
    fn may_hold(&self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }
}

impl KeyTable {
    /// Adds the rows of a batch.
    pub fn push(&mut self, keys: Keys) -> Result<()> {
        let first = self.rows;
        let rows = u32::try_from(keys.len()).ok();
        let end = rows.and_then(|rows| first.checked_add(rows)).filter(|end| *end < END);
        self.rows = end.ok_or_else(|| {
            MergeError::unsupported(
                "a merge of more than 4 billion rows under one memory limit; raise memory_limit or cut the source",
            )
        })?;
        self.parts.push(Part { first, keys });
        Ok(())
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// How many rows.
    pub fn len(&self) -> u32 {
        self.rows
    }

    /// Builds the table after all rows were added.
    pub fn index(&mut self) {
        let Self {
            parts,
            rows,
            heads,
            next,
            filter,
        } = self;
        *filter = Filter::new(*rows as usize);
        next.clear();
        next.resize(*rows as usize, END);
        heads.clear();
        heads.reserve(*rows as usize, |(hash, _)| *hash);
        // From the last to the first, so that a chain ascends.
        for part in parts.iter().rev() {
            let end = part.first.saturating_add(u32::try_from(part.keys.len()).unwrap_or(0));
            for row in (part.first..end).rev() {
                let Some(key) = part.keys.get((row - part.first) as usize) else {
                    continue;
                };
                let hash = key.hash();
                filter.insert(hash);
                let same = |head: &(u64, u32)| head.0 == hash && find(parts, head.1) == Some(key);
                let entry = heads.entry(hash, same, |(hash, _)| *hash);
                match entry {
                    hashbrown::hash_table::Entry::Occupied(mut entry) => {
                        if let Some(slot) = next.get_mut(row as usize) {
                            *slot = std::mem::replace(&mut entry.get_mut().1, row);
                        }
                    }
                    hashbrown::hash_table::Entry::Vacant(entry) => {
                        entry.insert((hash, row));
                    }
                }
            }
        }
    }

    /// The positions of the keys that may be in the table: most absent ones are filtered out.
    pub fn candidates(&self, keys: &Keys) -> Vec<usize> {
        match keys.fixed() {
            // A tight loop, as most rows of the table are filtered out here.
            Some(values) => {
                let hashes = values.iter().map(|value| Key::Fixed(*value).hash());
                let found = hashes.enumerate().filter(|(_, hash)| self.filter.may_hold(*hash));
                found.map(|(place, _)| place).collect()
            }
            None => (0..keys.len()).collect(),
        }
    }

    /// The rows of a key, in their order.
    pub fn rows_of(&self, key: Key<'_>) -> impl Iterator<Item = u32> + '_ {
        let hash = key.hash();
        let same = |head: &(u64, u32)| head.0 == hash && find(&self.parts, head.1) == Some(key);
        let head = self
            .filter
            .may_hold(hash)
            .then(|| self.heads.find(hash, same))
            .flatten();
        let mut row = head.map_or(END, |head| head.1);
        std::iter::from_fn(move || {
            let found = (row != END).then_some(row)?;
            row = self.next.get(found as usize).copied().unwrap_or(END);
            Some(found)
        })
    }
}

fn find(parts: &[Part], row: u32) -> Option<Key<'_>> {
    let part = parts.get(parts.partition_point(|part| part.first <= row).checked_sub(1)?)?;
    part.keys.get((row - part.first) as usize)
}
