//! Looks values of any length up: what all chunks of a page share is made once.
//!
//! Copies have one of few sizes, whatever the lengths of the items: what lies beyond an item is overwritten by the next one. A copy of the
//! length that an item has would be a call, and a branch that nobody can predict.

use std::sync::OnceLock;

use esker_codec::ends::Offset;

use crate::v2_1::builder::VariableBuilder;

/// Items up to so many bytes lie in a table of their own, with their lengths.
const SHORT: usize = 16;

/// Items up to so many bytes are copied as if all had as many.
const STEP: usize = 64;

/// Values that are looked up before their bytes are counted again.
const BATCH: usize = 1024;

/// Fewer values than this are copied one by one.
const FEW: usize = 64;

/// An item of at most [`SHORT`] bytes, and how many it has.
type Padded = ([u8; SHORT], u32);

/// What look-ups need besides the items.
#[derive(Debug, Default)]
pub(super) struct LookUp {
    /// Bytes of the longest item.
    longest: usize,
    padded: OnceLock<Vec<Padded>>,
}

impl LookUp {
    pub(super) fn new<O: Offset>(items: &VariableBuilder<O>) -> LookUp {
        let ends = items.offsets().iter().map(|end| end.to_u64());
        let starts = items.offsets().iter().skip(1).map(|end| end.to_u64());
        let lengths = starts.zip(ends).map(|(end, start)| end.saturating_sub(start));
        LookUp {
            longest: usize::try_from(lengths.max().unwrap_or(0)).unwrap_or(usize::MAX),
            padded: OnceLock::new(),
        }
    }

    /// Bytes that it takes or will take, for `items` items.
    pub(super) fn memory(&self, items: usize) -> usize {
        if self.longest <= SHORT {
            items.saturating_mul(size_of::<Padded>())
        } else {
            0
        }
    }

    /// Appends the items of `keys`; nothing for a key of none.
    pub(super) fn append<O: Offset>(
        &self,
        keys: impl ExactSizeIterator<Item = u64> + Clone,
        items: &VariableBuilder<O>,
        out: &mut VariableBuilder<O>,
    ) {
        let place = |key: u64| usize::try_from(key).unwrap_or(usize::MAX);
        if keys.len() < FEW {
            for key in keys {
                out.push(items.value(place(key)).unwrap_or_default());
            }
            return;
        }
        if self.longest <= SHORT {
            let padded = self.padded.get_or_init(|| padded(items));
            return append_padded(keys.map(place), padded, out);
        }
        if self.longest <= STEP {
            return append_middling(keys.map(place), self.longest, items, out);
        }
        let length = |key: u64| items.value(place(key)).map_or(0, <[u8]>::len);
        let size = keys.clone().fold(0_usize, |sum, key| sum.saturating_add(length(key)));
        out.make_room(keys.len(), size);
        for key in keys {
            out.push(items.value(place(key)).unwrap_or_default());
        }
    }
}

fn padded<O: Offset>(items: &VariableBuilder<O>) -> Vec<Padded> {
    let item = |index: usize| {
        let bytes = items.value(index).unwrap_or_default();
        let mut padded = [0; SHORT];
        padded.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        (padded, u32::try_from(bytes.len().min(SHORT)).unwrap_or(0))
    };
    (0..items.len()).map(item).collect()
}

fn append_padded<O: Offset>(
    keys: impl ExactSizeIterator<Item = usize>,
    items: &[Padded],
    out: &mut VariableBuilder<O>,
) {
    let mut left = keys.len();
    let (bytes, offsets) = out.parts(left);
    let mut keys = keys;
    let mut end = bytes.len();
    while left > 0 {
        let batch = left.min(BATCH);
        bytes.resize(end.saturating_add(batch * SHORT), 0);
        for key in keys.by_ref().take(batch) {
            let (item, length) = items.get(key).copied().unwrap_or_default();
            if let Some(to) = bytes.get_mut(end..).and_then(|rest| rest.first_chunk_mut()) {
                *to = item;
            }
            end += length as usize;
            offsets.push(O::from_u64(end as u64));
        }
        bytes.truncate(end);
        left -= batch;
    }
}

fn append_middling<O: Offset>(
    mut keys: impl ExactSizeIterator<Item = usize>,
    longest: usize,
    items: &VariableBuilder<O>,
    out: &mut VariableBuilder<O>,
) {
    let bounds = |key: usize| {
        let ends = items.offsets().get(key..).and_then(|ends| ends.first_chunk::<2>());
        let [start, end] = ends.copied().unwrap_or_default();
        let start = usize::try_from(start.to_u64()).unwrap_or(0);
        (start, usize::try_from(end.to_u64()).unwrap_or(0).saturating_sub(start))
    };
    let stored = items.as_bytes();
    let mut left = keys.len();
    let (bytes, offsets) = out.parts(left);
    let mut end = bytes.len();
    while left > 0 {
        let batch = left.min(BATCH);
        // As if all were as long as the longest: to count them first would be to look each up twice.
        bytes.resize(
            end.saturating_add(batch.saturating_mul(longest)).saturating_add(STEP),
            0,
        );
        for key in keys.by_ref().take(batch) {
            let (start, length) = bounds(key);
            let from = stored.get(start..).unwrap_or_default();
            let to = bytes.get_mut(end..).unwrap_or_default();
            match (from.first_chunk::<STEP>(), to.first_chunk_mut::<STEP>()) {
                (Some(from), Some(to)) => *to = *from,
                _ => {
                    if let (Some(from), Some(to)) = (from.get(..length), to.get_mut(..length)) {
                        to.copy_from_slice(from);
                    }
                }
            }
            end += length;
            offsets.push(O::from_u64(end as u64));
        }
        bytes.truncate(end);
        left -= batch;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lengths: &[usize], keys: &[u64]) {
        let mut items = VariableBuilder::<i32>::new();
        for (number, length) in lengths.iter().enumerate() {
            items.push(&vec![number as u8 + 1; *length]);
        }
        let look_up = LookUp::new(&items);
        let (mut found, mut expected) = (VariableBuilder::<i32>::new(), VariableBuilder::<i32>::new());
        for out in [&mut found, &mut expected] {
            out.push(b"before");
        }
        for round in [keys, &keys[..keys.len() / 2]] {
            look_up.append(round.iter().copied(), &items, &mut found);
            for key in round {
                expected.push(items.value(*key as usize).unwrap_or_default());
            }
        }
        assert_eq!(found.as_bytes(), expected.as_bytes());
        assert_eq!(found.offsets(), expected.offsets());
    }

    #[test]
    fn test_items_of_all_lengths_are_found() {
        for lengths in [
            vec![0, 1, 16, 7],
            vec![17, 3, 0, 32, 33],
            vec![5000, 0, 64, 31],
            vec![0, 0, 0, 0],
            vec![1],
        ] {
            for count in [1, 63, 64, 65, 1024, 1025, 5000] {
                let keys: Vec<u64> = (0..count).map(|i| (i * 7919 + i / 3) % lengths.len() as u64).collect();
                check(&lengths, &keys);
            }
        }
        check(&[], &[0; 100]);
    }
}
