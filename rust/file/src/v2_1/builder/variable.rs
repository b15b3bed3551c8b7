//! Strings and binary.

use std::ops::Range;
use std::sync::Arc;

use esker_codec::ends::Offset;

use super::values::{beyond, too_many};
use crate::error::{FileError, Result};
use crate::room::Room;

/// Room that the values of a chunk may need.
const LITTLE: usize = 64 * 1024;

/// The most that values are expected to expand, relative to their bytes in the file, when memory is reserved.
const MOST_TIMES: usize = 8;

/// The same relative to the values that are there already, where those expanded by more.
const MOST_MORE: usize = 32;

/// Offsets and bytes as Arrow lays them out.
#[derive(Debug)]
pub(crate) struct VariableBuilder<O> {
    offsets: Vec<O>,
    bytes: Vec<u8>,
    is_text: bool,
    /// So many bytes from the first on are known to be the text of whole values; those behind them may be, too.
    text: usize,
    /// Where there is not any number of bytes: how many there may be.
    room: Option<Arc<Room>>,
}

impl<O: Offset> VariableBuilder<O> {
    /// No values yet. Of text it is noted how far it is known to be UTF-8.
    pub(crate) fn new(is_text: bool) -> VariableBuilder<O> {
        VariableBuilder {
            offsets: vec![O::default()],
            bytes: Vec::new(),
            is_text,
            text: 0,
            room: None,
        }
    }

    /// No more bytes than `room` has may be here, of those that are known before they are.
    pub(crate) fn allow(&mut self, room: &Arc<Room>) {
        self.room = Some(room.clone());
    }

    /// Whether `more` bytes may follow.
    pub(crate) fn check_room(&self, more: usize) -> Result<()> {
        let all = self.bytes.len().saturating_add(more);
        self.room.as_ref().map_or(Ok(()), |room| room.check(all, all as u64))
    }

    /// Notes that the bytes from `start` on, where a value starts, are values each of which is UTF-8.
    pub(crate) fn note_text(&mut self, start: usize) {
        if self.text >= start {
            self.text = self.bytes.len();
        }
    }

    /// Looks whether the bytes from `start` on are ASCII, while they are in the processor's cache; not where those before them are
    /// not known to be text.
    pub(crate) fn look_for_ascii(&mut self, start: usize) {
        if self.is_text && self.text >= start && self.bytes.get(start..).is_some_and(<[u8]>::is_ascii) {
            self.text = self.bytes.len();
        }
    }

    /// No values yet, of the same kind.
    pub(crate) fn another(&self) -> VariableBuilder<O> {
        VariableBuilder::new(self.is_text)
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Where each value ends, after where the first one starts.
    pub(crate) fn offsets(&self) -> &[O] {
        &self.offsets
    }

    /// The bytes of all values.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of one value.
    pub(crate) fn value(&self, index: usize) -> Option<&[u8]> {
        let start = self.offsets.get(index)?.to_u64();
        let end = self.offsets.get(index.checked_add(1)?)?.to_u64();
        self.bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    /// Makes room for `n` values of `bytes` bytes together. A wish, not a need.
    pub(crate) fn expect(&mut self, n: usize, bytes: usize) {
        let _ = self.offsets.try_reserve_exact(n);
        let _ = self.bytes.try_reserve_exact(bytes);
    }

    /// Makes room for the next `n` values of `bytes` bytes together. A wish, not a need.
    pub(crate) fn make_room(&mut self, n: usize, bytes: usize) {
        let _ = self.offsets.try_reserve(n);
        let _ = self.bytes.try_reserve(bytes);
    }

    /// Makes room for what `total` bytes of the file will become, as `done` of them became the bytes that are here; not for more than
    /// [`MOST_TIMES`] as many, or [`MOST_MORE`] times those that are here. Memory that grows bit by bit is copied each time, and is there
    /// twice. A wish, not a need.
    pub(crate) fn foresee(&mut self, done: usize, total: usize) {
        let left = self.bytes.capacity().saturating_sub(self.bytes.len());
        if left > LITTLE || done == 0 || done >= total {
            return;
        }
        let expected = (self.bytes.len() as u128).saturating_mul(total as u128) / done as u128;
        let expected = usize::try_from(expected).unwrap_or(usize::MAX);
        let expected = expected.saturating_add(expected / 16).saturating_add(LITTLE);
        let most = total
            .saturating_mul(MOST_TIMES)
            .max(self.bytes.len().saturating_mul(MOST_MORE));
        let left = self.room.as_ref().map_or(usize::MAX, |room| room.left());
        let more = expected.min(most).min(left).saturating_sub(self.bytes.len());
        let _ = self.bytes.try_reserve_exact(more);
    }

    /// Makes room for `n` values of `size` bytes each.
    pub(crate) fn try_reserve(&mut self, n: usize, size: usize) -> Result<()> {
        let bytes = n.checked_mul(size).ok_or_else(|| too_many(n))?;
        self.offsets.try_reserve(n).map_err(|_| too_many(n))?;
        self.bytes.try_reserve(bytes).map_err(|_| too_many(n))
    }

    /// The memory to append one value to; [`Self::end_value`] ends it.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The memory to append the bytes of `n` values to, and their ends.
    pub(crate) fn parts(&mut self, n: usize) -> (&mut Vec<u8>, &mut Vec<O>) {
        let _ = self.offsets.try_reserve(n);
        (&mut self.bytes, &mut self.offsets)
    }

    /// Ends the value that was appended to [`Self::bytes`].
    pub(crate) fn end_value(&mut self) {
        self.offsets.push(O::from_u64(self.bytes.len() as u64));
    }

    /// Adds one value.
    pub(crate) fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.end_value();
    }

    /// Adds `n` empty values.
    pub(crate) fn append_empty(&mut self, n: usize) {
        let end = O::from_u64(self.bytes.len() as u64);
        self.offsets.resize(self.offsets.len().saturating_add(n), end);
    }

    /// Adds values that lie one after the other in `bytes`; `ends` are where each ends, counted from where `bytes` start.
    pub(crate) fn append_run(&mut self, bytes: &[u8], ends: impl Iterator<Item = u64>) {
        let base = self.bytes.len() as u64;
        self.offsets.extend(ends.map(|end| O::from_u64(base.wrapping_add(end))));
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.look_for_ascii(start);
    }

    /// Adds the values of `range` of another.
    pub(crate) fn append_range(&mut self, other: &VariableBuilder<O>, range: Range<usize>) -> Result<()> {
        let offsets = other.offsets.get(range.start..range.end.saturating_add(1));
        let ends = offsets.and_then(|offsets| offsets.first().zip(offsets.last()));
        let span = ends.and_then(|(first, last)| {
            let start = usize::try_from(first.to_u64()).ok()?;
            Some((first.to_u64(), start..usize::try_from(last.to_u64()).ok()?))
        });
        let found = span.and_then(|(first, span)| Some((first, other.bytes.get(span)?)));
        let (Some((first, bytes)), Some(offsets)) = (found, offsets) else {
            return Err(beyond(&range, other.len()));
        };
        self.append_run(
            bytes,
            offsets.iter().skip(1).map(|end| end.to_u64().wrapping_sub(first)),
        );
        Ok(())
    }

    /// Refuses more bytes than the offsets can count.
    pub(crate) fn check(&self) -> Result<()> {
        if self.bytes.len() as u64 > O::MAX {
            return Err(FileError::invalid(format!(
                "the values of one batch hold more than {} bytes; read fewer rows at a time or use a large_ type",
                O::MAX
            )));
        }
        Ok(())
    }

    /// Offsets and bytes, and how many of the bytes are known to be the text of whole values, from the first on.
    pub(crate) fn finish(self) -> Result<(Vec<O>, Vec<u8>, usize)> {
        self.check()?;
        Ok((self.offsets, self.bytes, self.text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn test_what_is_noted_as_text_is_text(
            steps in prop::collection::vec((0..4_u8, prop_oneof!["[a-z]{0,9}", "\\PC{0,3}"]), 0..12),
            is_text in any::<bool>(),
        ) {
            let mut all = VariableBuilder::<i32>::new(is_text);
            for (way, text) in steps {
                let start = all.as_bytes().len();
                match way {
                    0 => all.push(text.as_bytes()),
                    1 => all.append_run(text.as_bytes(), std::iter::once(text.len() as u64)),
                    2 => {
                        all.bytes().extend_from_slice(text.as_bytes());
                        all.end_value();
                        all.look_for_ascii(start);
                    }
                    _ => {
                        all.push(text.as_bytes());
                        all.note_text(start);
                    }
                }
            }
            let (offsets, bytes, known) = all.finish().unwrap();
            prop_assert!(offsets.contains(&(known as i32)));
            for pair in offsets.windows(2).filter(|pair| pair[1] as usize <= known) {
                prop_assert!(std::str::from_utf8(&bytes[pair[0] as usize..pair[1] as usize]).is_ok());
            }
        }
    }
}
