//! Values of one width.

use std::ops::Range;

use arrow_buffer::Buffer;
use bytes::Bytes;

use super::values::beyond;
use crate::error::Result;

/// Values of `width` bytes each.
#[derive(Debug)]
pub(crate) struct FixedBuilder {
    pub(crate) width: usize,
    /// All values so far, while `whole` is `None`.
    bytes: Vec<u8>,
    /// All values so far, in shared memory.
    whole: Option<Bytes>,
    /// The capacity to reserve when the first value is copied.
    expected: usize,
}

impl FixedBuilder {
    pub(crate) fn new(width: usize) -> FixedBuilder {
        FixedBuilder {
            width,
            bytes: Vec::new(),
            whole: None,
            expected: 0,
        }
    }

    /// Makes room for `n` values once one is copied. A wish, not a need.
    pub(crate) fn expect(&mut self, n: usize) {
        self.expected = n.saturating_mul(self.width);
    }

    pub(crate) fn len(&self) -> usize {
        self.as_slice().len().checked_div(self.width).unwrap_or(0)
    }

    /// The values so far.
    pub(crate) fn as_slice(&self) -> &[u8] {
        self.whole.as_deref().unwrap_or(&self.bytes)
    }

    /// The memory to append values to.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        if self.expected > 0 {
            let more = std::mem::take(&mut self.expected).saturating_sub(self.bytes.len());
            // Without the room the values make their own, or fail with a message.
            let _ = self.bytes.try_reserve_exact(more);
        }
        if let Some(whole) = self.whole.take() {
            self.bytes.extend_from_slice(&whole);
        }
        &mut self.bytes
    }

    /// Adds values; the first ones are not copied.
    pub(crate) fn append_shared(&mut self, values: Bytes) {
        if self.as_slice().is_empty() && self.bytes.capacity() == 0 {
            self.whole = Some(values);
        } else {
            self.bytes().extend_from_slice(&values);
        }
    }

    /// Adds the values of `range` of another of this width.
    pub(crate) fn append_range(&mut self, other: &FixedBuilder, range: Range<usize>) -> Result<()> {
        let bytes = range.start.saturating_mul(self.width)..range.end.saturating_mul(self.width);
        let from = other.as_slice().get(bytes).ok_or_else(|| beyond(&range, other.len()))?;
        self.bytes().extend_from_slice(from);
        Ok(())
    }

    pub(crate) fn finish(self) -> Buffer {
        match self.whole {
            Some(whole) => Buffer::from(whole),
            None => Buffer::from_vec(self.bytes),
        }
    }
}
