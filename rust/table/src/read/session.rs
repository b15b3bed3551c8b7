//! A session: what the datasets that share it keep in memory, within limits of bytes.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use esker_file::cache::{Owner, ReadCache, DEFAULT_CACHE_BYTES};

/// The default limit of what is kept of indices, in bytes.
const DEFAULT_INDEX_BYTES: usize = 1024 * 1024 * 1024;

/// The caches of some datasets.
///
/// Two handles to one place share what was read of its files. A place is a store's URI and the options that it was opened with: who has other
/// credentials reads for himself. Stores that have no URI of their own, such as the branches of a repository, share limits and nothing else,
/// for there a path may mean other bytes.
pub struct Session {
    metadata: Arc<ReadCache>,
    index: Arc<ReadCache>,
    places: Mutex<HashMap<String, Arc<Owner>>>,
}

impl Session {
    /// A session with limits in bytes; by default 256 MiB for the metadata of files and pages and 1 GiB for indices.
    pub fn new(metadata_bytes: Option<usize>, index_bytes: Option<usize>) -> Arc<Session> {
        Session::over(
            ReadCache::new(metadata_bytes.unwrap_or(DEFAULT_CACHE_BYTES)),
            index_bytes,
        )
    }

    /// A session for a pass that comes to each page once.
    pub(super) fn for_one_pass(metadata_bytes: usize) -> Arc<Session> {
        Session::over(ReadCache::keeping_the_newest(metadata_bytes), Some(0))
    }

    fn over(metadata: Arc<ReadCache>, index_bytes: Option<usize>) -> Arc<Session> {
        Arc::new(Session {
            metadata,
            index: ReadCache::new(index_bytes.unwrap_or(DEFAULT_INDEX_BYTES)),
            places: Mutex::default(),
        })
    }

    /// What is kept of open files, their pages, their statistics and of deletion files.
    pub fn metadata(&self) -> &Arc<ReadCache> {
        &self.metadata
    }

    /// What is kept of indices.
    pub fn index(&self) -> &Arc<ReadCache> {
        &self.index
    }

    /// The owner of what is kept of a place.
    pub(super) fn place(&self, place: &str) -> Arc<Owner> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        match places.get(place) {
            Some(owner) => owner.clone(),
            None => {
                let owner = Arc::new(self.metadata.owner());
                places.insert(place.to_owned(), owner.clone());
                owner
            }
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the places, whose options may hold passwords.
        let (metadata, index) = (&self.metadata, &self.index);
        f.debug_struct("Session")
            .field("metadata", metadata)
            .field("index", index)
            .finish_non_exhaustive()
    }
}
