//! A limit of the temporary files of several holders together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::error::{MergeError, Result};

/// Bytes that temporary files may take, together; clones share them.
#[derive(Debug, Clone)]
pub struct DiskQuota(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: u64,
    used: AtomicU64,
}

impl Default for DiskQuota {
    /// Any number of bytes.
    fn default() -> Self {
        Self::new(u64::MAX)
    }
}

impl DiskQuota {
    /// So many bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self(Arc::new(Shared {
            limit,
            used: AtomicU64::new(0),
        }))
    }

    /// Bytes that are taken.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Takes some of them.
    pub(crate) fn take(&self, bytes: u64) -> Result<()> {
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.0.limit);
        let taken = self.0.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map(|_| ()).map_err(|_| {
            MergeError::invalid(format!(
                "expected at most {} bytes of temporary files (max_temp_directory_size), the merge needs more; give it more, or a \
                 smaller source",
                self.0.limit
            ))
        })
    }

    /// Gives some back.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}
