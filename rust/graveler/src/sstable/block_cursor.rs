//! Iterates over the entries of one block.

use std::ops::Range;

use bytes::Bytes;

use super::user_key;
use crate::error::{GravelerError, Result};
use crate::varint::uvarint;

/// A cursor over a block: before the first entry, at one, or after the last.
#[derive(Debug, Clone, Default)]
pub struct BlockCursor {
    block: Bytes,
    /// Where the entries end and the restarts begin.
    end: usize,
    next: usize,
    key: Vec<u8>,
    value: Range<usize>,
}

impl BlockCursor {
    /// A cursor before the first entry of an opened block.
    pub fn new(block: Bytes) -> Result<Self> {
        let end = entries_end(&block).ok_or_else(|| {
            corrupt(
                block.len(),
                "expected restarts and their number at the end of a block, found too few bytes",
            )
        })?;
        Ok(BlockCursor {
            block,
            end,
            ..Self::default()
        })
    }

    /// Moves before the first entry of another block and keeps the key buffer.
    pub(crate) fn enter(&mut self, block: Bytes) -> Result<()> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        *self = BlockCursor {
            key,
            ..Self::new(block)?
        };
        Ok(())
    }

    /// Whether no entry follows.
    pub(crate) fn is_at_end(&self) -> bool {
        self.next >= self.end
    }

    /// To the next entry; false after the last.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        if self.next >= self.end {
            return Ok(false);
        }
        let at = self.next;
        if self.step().is_none() {
            return Err(corrupt(
                at,
                "expected an entry within the block, found one that reaches beyond it",
            ));
        }
        Ok(true)
    }

    fn step(&mut self) -> Option<()> {
        let entries = self.block.get(..self.end)?;
        let mut at = self.next;
        let mut number = || {
            let rest = entries.get(at..)?;
            // A fast path, as nearly all lengths fit in one byte.
            let (value, used) = match rest.first() {
                Some(byte) if *byte < 0x80 => (u64::from(*byte), 1),
                _ => uvarint(rest)?,
            };
            at += used;
            usize::try_from(value).ok()
        };
        let (shared, unshared, value_len) = (number()?, number()?, number()?);
        let key_end = at.checked_add(unshared)?;
        let value_end = key_end.checked_add(value_len)?;
        if shared > self.key.len() || value_end > entries.len() {
            return None;
        }
        let suffix = entries.get(at..key_end)?;
        self.key.truncate(shared);
        self.key.extend_from_slice(suffix);
        self.value = key_end..value_end;
        self.next = value_end;
        Some(())
    }

    /// To the first entry whose whole key is not before `key`, from where the cursor stands; false if there is none.
    pub fn advance_to(&mut self, reached: impl Fn(&[u8]) -> bool) -> Result<bool> {
        while self.advance()? {
            if reached(&self.key) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The key as it is stored, trailer included.
    pub fn stored_key(&self) -> &[u8] {
        &self.key
    }

    /// The user's part of the key.
    #[inline]
    pub fn key(&self) -> Result<&[u8]> {
        user_key(&self.key).ok_or_else(|| corrupt(self.next, "expected a key of 8 bytes or more, found a shorter one"))
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.block.get(self.value.clone()).unwrap_or_default()
    }

    /// The value, sharing the block's memory.
    pub fn value_bytes(&self) -> Bytes {
        self.block.slice(self.value.clone())
    }
}

fn entries_end(block: &[u8]) -> Option<usize> {
    let (_, count) = block.split_last_chunk::<4>()?;
    let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
    block.len().checked_sub(4)?.checked_sub(count.checked_mul(4)?)
}

fn corrupt(at: usize, message: &str) -> GravelerError {
    GravelerError::corrupt("block", format!("byte {at}: {message}"))
}
