//! IO statistics of a store handle: requests and bytes since the last call of [`StatsCounters::take`].

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Requests and bytes of one store handle. A request is what costs a round trip on an object store: coalesced ranges are one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoStats {
    /// Reads of any length, and requests for an object's size.
    pub read_requests: u64,
    /// Bytes that were read, gaps between coalesced ranges included.
    pub bytes_read: u64,
    /// Puts, the parts and the completion of multipart uploads, and deletes.
    pub write_requests: u64,
    /// Bytes that were written.
    pub bytes_written: u64,
    /// Listings.
    pub list_requests: u64,
}

impl IoStats {
    /// The counts of two handles together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            read_requests: self.read_requests + other.read_requests,
            bytes_read: self.bytes_read + other.bytes_read,
            write_requests: self.write_requests + other.write_requests,
            bytes_written: self.bytes_written + other.bytes_written,
            list_requests: self.list_requests + other.list_requests,
        }
    }
}

/// Reads of all stores of the process, and the bytes that they read; never reset.
static READS: (AtomicU64, AtomicU64) = (AtomicU64::new(0), AtomicU64::new(0));

/// The read requests of all stores of the process since its start, and the bytes that they read.
#[must_use]
pub fn total_reads() -> (u64, u64) {
    (READS.0.load(Relaxed), READS.1.load(Relaxed))
}

/// The counters behind [`IoStats`], shared by all users of a store handle.
#[derive(Debug, Default)]
pub struct StatsCounters {
    read_requests: AtomicU64,
    bytes_read: AtomicU64,
    write_requests: AtomicU64,
    bytes_written: AtomicU64,
    list_requests: AtomicU64,
}

impl StatsCounters {
    /// Counts one read.
    pub fn add_read(&self, bytes: u64) {
        self.add_reads(1, bytes);
    }

    /// Counts several reads at once.
    pub fn add_reads(&self, requests: u64, bytes: u64) {
        self.read_requests.fetch_add(requests, Relaxed);
        self.bytes_read.fetch_add(bytes, Relaxed);
        READS.0.fetch_add(requests, Relaxed);
        READS.1.fetch_add(bytes, Relaxed);
    }

    /// Counts one write.
    pub fn add_write(&self, bytes: u64) {
        self.write_requests.fetch_add(1, Relaxed);
        self.bytes_written.fetch_add(bytes, Relaxed);
    }

    /// Counts one listing.
    pub fn add_list(&self) {
        self.list_requests.fetch_add(1, Relaxed);
    }

    /// The counts since the last [`StatsCounters::take`], without resetting them.
    pub fn peek(&self) -> IoStats {
        IoStats {
            read_requests: self.read_requests.load(Relaxed),
            bytes_read: self.bytes_read.load(Relaxed),
            write_requests: self.write_requests.load(Relaxed),
            bytes_written: self.bytes_written.load(Relaxed),
            list_requests: self.list_requests.load(Relaxed),
        }
    }

    /// The counts since the last call, reset to zero.
    pub fn take(&self) -> IoStats {
        IoStats {
            read_requests: self.read_requests.swap(0, Relaxed),
            bytes_read: self.bytes_read.swap(0, Relaxed),
            write_requests: self.write_requests.swap(0, Relaxed),
            bytes_written: self.bytes_written.swap(0, Relaxed),
            list_requests: self.list_requests.swap(0, Relaxed),
        }
    }
}
