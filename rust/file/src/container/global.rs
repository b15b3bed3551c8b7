//! Global buffers: bytes of a file that belong to no column. Number 0 is the file's descriptor, the others are whatever its writer put
//! there.

use bytes::Bytes;

use super::metadata::BufferRange;
use super::read::Container;
use crate::error::{FileError, Result};

impl Container {
    /// The bytes of global buffer `index`.
    pub async fn read_global_buffer(&self, index: usize) -> Result<Bytes> {
        let buffers = self.global_buffers();
        let Some(range) = buffers.get(index) else {
            return Err(FileError::invalid(format!(
                "expected a global buffer of {}, found index {index} of {} buffers",
                self.path(),
                buffers.len()
            )));
        };
        if let Some(bytes) = self.buffer_at_hand(index) {
            return Ok(bytes);
        }
        let mut parts = self
            .store()
            .get_ranges(self.path(), std::slice::from_ref(range))
            .await?;
        Ok(parts.pop().unwrap_or_default())
    }

    /// Bytes that all global buffers take.
    pub fn global_bytes(&self) -> u64 {
        let sizes = self.global_buffers().iter().map(|b: &BufferRange| b.end - b.start);
        sizes.fold(0, u64::saturating_add)
    }
}
