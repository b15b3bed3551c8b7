//! A cache of open data files and deletion vectors. A data file never changes once it has its name, so an open one stays valid.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use esker_file::{FileReader, PassCache};
use esker_store::store::StoreRef;

use crate::deletion::DeletionVector;
use crate::error::Result;
use crate::fragment::{DataFile, Fragment};

/// The most open files that are cached; their metadata takes the memory.
const KEPT_FILES: usize = 512;

/// The most bytes of decoded deletion files that are cached.
const KEPT_DELETIONS: usize = 64 << 20;

/// A table's store with the data files that were opened in it.
#[derive(Debug)]
pub struct TableFiles {
    store: StoreRef,
    kept: Mutex<Kept>,
    deletions: Mutex<KeptDeletions>,
    one_pass: Option<OnePass>,
}

/// What is kept of files in a pass that comes to each page once.
#[derive(Debug)]
struct OnePass {
    /// The most bytes of the files' metadata.
    metadata: u64,
    pages: PassCache,
}

/// A cache of decoded deletion files, which never change either.
#[derive(Debug, Default)]
struct KeptDeletions {
    vectors: HashMap<String, Arc<DeletionVector>>,
    oldest_first: VecDeque<String>,
    bytes: usize,
}

impl KeptDeletions {
    fn insert(&mut self, path: String, vector: &Arc<DeletionVector>) {
        if self.vectors.insert(path.clone(), vector.clone()).is_none() {
            self.bytes += vector.memory();
            self.oldest_first.push_back(path);
        }
        while self.bytes > KEPT_DELETIONS {
            let Some(oldest) = self.oldest_first.pop_front() else {
                break;
            };
            if let Some(vector) = self.vectors.remove(&oldest) {
                self.bytes = self.bytes.saturating_sub(vector.memory());
            }
        }
    }
}

#[derive(Debug, Default)]
struct Kept {
    readers: HashMap<String, FileReader>,
    oldest_first: VecDeque<String>,
    bytes: u64,
}

impl TableFiles {
    /// The files of the table at the root of `store`.
    pub fn new(store: StoreRef) -> Self {
        TableFiles {
            store,
            kept: Mutex::default(),
            deletions: Mutex::default(),
            one_pass: None,
        }
    }

    /// The same store for a pass that comes to each page once, part by part. `bytes` are kept: half of them of the files' metadata, and half
    /// of the pages that the pass is at.
    pub fn for_one_pass(&self, bytes: u64) -> TableFiles {
        TableFiles {
            one_pass: Some(OnePass {
                metadata: bytes / 2,
                pages: PassCache::new(bytes / 2),
            }),
            ..TableFiles::new(self.store.clone())
        }
    }

    /// The store that holds the table.
    pub fn store(&self) -> &StoreRef {
        &self.store
    }

    /// Opens a data file, or returns the cached one.
    pub async fn open(&self, file: &DataFile) -> Result<FileReader> {
        let path = file.location();
        if let Some(reader) = self.kept.lock().ok().and_then(|kept| kept.readers.get(&path).cloned()) {
            return Ok(reader);
        }
        let (store, size) = (self.store.clone(), file.file_size_bytes);
        let reader = match &self.one_pass {
            Some(pass) => FileReader::open_for_one_pass(store, &path, size, &pass.pages).await?,
            None => FileReader::open_sized(store, &path, size).await?,
        };
        if let Ok(mut kept) = self.kept.lock() {
            if kept.readers.insert(path.clone(), reader.clone()).is_none() {
                kept.oldest_first.push_back(path);
                kept.bytes = kept.bytes.saturating_add(reader.metadata_bytes());
            }
            let most = self.one_pass.as_ref().map_or(u64::MAX, |pass| pass.metadata);
            while kept.oldest_first.len() > KEPT_FILES || (kept.bytes > most && kept.oldest_first.len() > 1) {
                let Some(oldest) = kept.oldest_first.pop_front() else {
                    break;
                };
                if let Some(reader) = kept.readers.remove(&oldest) {
                    kept.bytes = kept.bytes.saturating_sub(reader.metadata_bytes());
                }
            }
        }
        Ok(reader)
    }

    /// The deleted rows of a fragment.
    pub async fn deletions(&self, fragment: &Fragment) -> Result<Option<Arc<DeletionVector>>> {
        let Some(file) = fragment.deletion_file() else {
            return Ok(None);
        };
        let path = file.location(fragment.id());
        if let Some(vector) = self
            .deletions
            .lock()
            .ok()
            .and_then(|kept| kept.vectors.get(&path).cloned())
        {
            vector.check(file.num_deleted_rows, fragment.physical_rows(), &path)?;
            return Ok(Some(vector));
        }
        let vector = DeletionVector::decode(file.file_type, &self.store.get(&path).await?, &path)?;
        vector.check(file.num_deleted_rows, fragment.physical_rows(), &path)?;
        let vector = Arc::new(vector);
        if let Ok(mut kept) = self.deletions.lock() {
            kept.insert(path, &vector);
        }
        Ok(Some(vector))
    }
}
