//! Builds one block: entries with prefix-compressed keys, and the restart points, at which keys are stored whole.

use super::index_key::shared_prefix;
use crate::varint::put_uvarint;

/// The most bytes of a varint.
const MOST_VARINT: usize = 10;

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
    /// An empty block, in which every `restart_interval`-th key is stored whole.
    pub fn new(restart_interval: usize) -> Self {
        BlockWriter {
            restart_interval,
            ..Self::default()
        }
    }

    /// Appends an entry. Its key is compared with the last one, which is kept.
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.append(key, shared_prefix(key, &self.last_key), &[], value);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
    }

    /// Appends an entry whose key shares `shared` bytes with the last one, as the caller knows; the trailer is never shared. The key is not
    /// kept.
    #[inline]
    pub(super) fn append(&mut self, key: &[u8], shared: usize, trailer: &[u8], value: &[u8]) {
        let shared = if self.entries == self.next_restart {
            self.next_restart = self.entries + self.restart_interval;
            // The limit on entries keeps blocks below 2^28 bytes.
            self.restarts.push(u32::try_from(self.buffer.len()).unwrap_or(u32::MAX));
            0
        } else {
            shared
        };
        let unshared = key.get(shared..).unwrap_or_default();
        self.buffer
            .reserve(unshared.len() + trailer.len() + value.len() + 3 * MOST_VARINT);
        put_uvarint(&mut self.buffer, shared as u64);
        put_uvarint(&mut self.buffer, (unshared.len() + trailer.len()) as u64);
        put_uvarint(&mut self.buffer, value.len() as u64);
        self.buffer.extend_from_slice(unshared);
        self.buffer.extend_from_slice(trailer);
        self.buffer.extend_from_slice(value);
        self.entries += 1;
    }

    /// How many entries there are.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The key that [`BlockWriter::add`] was given last; empty before the first.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Whether the block, if it were finished now, would be these bytes.
    pub(super) fn is(&self, block: &[u8]) -> bool {
        let Some((entries, restarts)) = block.split_at_checked(self.buffer.len()) else {
            return false;
        };
        if entries != self.buffer || restarts.len() != 4 * self.restarts.len() + 4 {
            return false;
        }
        let count = u32::try_from(self.restarts.len()).unwrap_or(u32::MAX);
        let ours = self.restarts.iter().chain(std::iter::once(&count));
        ours.zip(restarts.chunks_exact(4)).all(|(a, b)| a.to_le_bytes() == b)
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
        self.clear();
        sealed
    }

    /// Removes all entries and keeps the buffers.
    pub(super) fn clear(&mut self) {
        self.entries = 0;
        self.next_restart = 0;
        self.buffer.clear();
        self.restarts.clear();
        self.last_key.clear();
    }
}
