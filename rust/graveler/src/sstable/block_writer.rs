//! Builds one block: entries whose keys leave out what they share with the one before, and where keys stand whole.

use super::index_key::shared_prefix;
use crate::varint::put_uvarint;

/// A block that is being written.
#[derive(Debug, Default)]
pub struct BlockWriter {
    restart_interval: usize,
    entries: usize,
    next_restart: usize,
    buffer: Vec<u8>,
    restarts: Vec<u32>,
    last_key: Vec<u8>,
}

impl BlockWriter {
    /// An empty block, in which each `restart_interval`-th key stands whole.
    pub fn new(restart_interval: usize) -> Self {
        BlockWriter {
            restart_interval,
            ..Self::default()
        }
    }

    /// Appends an entry. The key is in two parts; only the first may be left out where it is shared.
    #[inline]
    pub fn add(&mut self, key: &[u8], trailer: &[u8], value: &[u8]) {
        let shared = if self.entries == self.next_restart {
            self.next_restart = self.entries + self.restart_interval;
            // Blocks are limited to less than 2^28 bytes by what a writer lets in.
            self.restarts.push(u32::try_from(self.buffer.len()).unwrap_or(u32::MAX));
            0
        } else {
            shared_prefix(key, &self.last_key)
        };
        let unshared = key.get(shared..).unwrap_or_default();
        put_uvarint(&mut self.buffer, shared as u64);
        put_uvarint(&mut self.buffer, (unshared.len() + trailer.len()) as u64);
        put_uvarint(&mut self.buffer, value.len() as u64);
        self.buffer.extend_from_slice(unshared);
        self.buffer.extend_from_slice(trailer);
        self.buffer.extend_from_slice(value);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(unshared);
        self.last_key.extend_from_slice(trailer);
        self.entries += 1;
    }

    /// How many entries there are.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The key of the last entry, trailer included; empty before the first.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// How large the block is, as Pebble counts: entries, restarts, and their number.
    pub fn estimated_size(&self) -> usize {
        self.buffer.len() + 4 * self.restarts.len() + 4
    }

    /// Whether the block ends before an entry of these lengths: when it is at its target, or so near that the entry would pass it.
    pub(super) fn ends_before(&self, key_len: usize, value_len: usize, target: usize, threshold: usize) -> bool {
        let size = self.estimated_size();
        if self.entries == 0 || size <= threshold {
            return false;
        }
        if size >= target {
            return true;
        }
        let restart = if self.entries.is_multiple_of(self.restart_interval) {
            4
        } else {
            0
        };
        let lengths = 4 + crate::varint::uvarint_len(key_len) + crate::varint::uvarint_len(value_len);
        size + key_len + value_len + restart + lengths > target
    }

    /// Ends the block and hands its bytes to `seal`; the writer is empty after that.
    pub fn finish<T>(&mut self, seal: impl FnOnce(&[u8]) -> T) -> T {
        if self.entries == 0 {
            self.restarts.push(0);
        }
        for restart in &self.restarts {
            self.buffer.extend_from_slice(&restart.to_le_bytes());
        }
        let count = u32::try_from(self.restarts.len()).unwrap_or(u32::MAX);
        self.buffer.extend_from_slice(&count.to_le_bytes());
        let sealed = seal(&self.buffer);
        self.entries = 0;
        self.next_restart = 0;
        self.buffer.clear();
        self.restarts.clear();
        self.last_key.clear();
        sealed
    }
}
