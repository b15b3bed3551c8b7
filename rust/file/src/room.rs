//! How much memory the values of a read may take, all columns and files together.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{FileError, Result};

/// The memory of one read. Values of any length take room of it as their columns are done, and look before how much is left.
#[derive(Debug)]
pub struct Room {
    most: usize,
    used: AtomicUsize,
}

impl Room {
    /// Of so many bytes.
    pub fn new(most: usize) -> Room {
        Room {
            most,
            used: AtomicUsize::new(0),
        }
    }

    /// Of any number of bytes.
    pub fn unbounded() -> Room {
        Room::new(usize::MAX)
    }

    /// Bytes that are left.
    pub(crate) fn left(&self) -> usize {
        match self.most {
            usize::MAX => usize::MAX,
            most => most.saturating_sub(self.used.load(Ordering::Relaxed)),
        }
    }

    /// Takes the bytes of a column that is done.
    pub(crate) fn take(&self, bytes: usize) {
        if self.most < usize::MAX {
            self.used.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Whether a column may have `bytes` bytes; `all` are those that it will have, as far as is known.
    pub(crate) fn check(&self, bytes: usize, all: u64) -> Result<()> {
        if bytes <= self.left() {
            return Ok(());
        }
        Err(self.too_large(all))
    }

    /// The error for a column of `all` bytes beside those that are done.
    pub(crate) fn too_large(&self, all: u64) -> FileError {
        FileError::TooLarge {
            bytes: all.saturating_add(self.used.load(Ordering::Relaxed) as u64),
            most: self.most as u64,
        }
    }
}
