//! Strings and binary.

use std::ops::Range;

use esker_codec::ends::Offset;

use super::values::too_many;
use crate::error::{FileError, Result};

/// Room that the values of a chunk may need.
const LITTLE: usize = 64 * 1024;

/// The most that values are expected to expand, relative to their bytes in the file, when memory is reserved.
const MOST_TIMES: usize = 8;

/// Offsets and bytes as Arrow lays them out.
#[derive(Debug)]
pub(crate) struct VariableBuilder<O> {
    offsets: Vec<O>,
    bytes: Vec<u8>,
}

impl<O: Offset> VariableBuilder<O> {
    pub(crate) fn new() -> VariableBuilder<O> {
        VariableBuilder {
            offsets: vec![O::default()],
            bytes: Vec::new(),
        }
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
    /// [`MOST_TIMES`] as many. Memory that grows bit by bit is copied each time. A wish, not a need.
    pub(crate) fn foresee(&mut self, done: usize, total: usize) {
        let left = self.bytes.capacity().saturating_sub(self.bytes.len());
        if left > LITTLE || done == 0 || done >= total {
            return;
        }
        let expected = (self.bytes.len() as u128).saturating_mul(total as u128) / done as u128;
        let expected = usize::try_from(expected).unwrap_or(usize::MAX);
        let expected = expected.saturating_add(expected / 16).saturating_add(LITTLE);
        let most = total.saturating_mul(MOST_TIMES);
        let more = expected.min(most).saturating_sub(self.bytes.len());
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
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds the values of `range` of another.
    pub(crate) fn append_range(&mut self, other: &VariableBuilder<O>, range: Range<usize>) {
        let offsets = other
            .offsets
            .get(range.start..range.end.saturating_add(1))
            .unwrap_or_default();
        let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
            return;
        };
        let (first, last) = (first.to_u64(), last.to_u64());
        let span = usize::try_from(first).ok().zip(usize::try_from(last).ok());
        let bytes = span
            .and_then(|(first, last)| other.bytes.get(first..last))
            .unwrap_or_default();
        self.append_run(
            bytes,
            offsets.iter().skip(1).map(|end| end.to_u64().wrapping_sub(first)),
        );
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

    /// Offsets and bytes.
    pub(crate) fn finish(self) -> Result<(Vec<O>, Vec<u8>)> {
        self.check()?;
        Ok((self.offsets, self.bytes))
    }
}
