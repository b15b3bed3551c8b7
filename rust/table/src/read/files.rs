//! The open data files and deletion vectors of a table, kept in a session. Neither file changes once it has its name.

use std::sync::Arc;

use esker_file::cache::{Owner, ReadCache, Slot};
use esker_file::{FileReader, FileVersion};
use esker_store::store::StoreRef;

use super::session::Session;
use crate::deletion::DeletionVector;
use crate::error::Result;
use crate::fragment::{DataFile, Fragment};

/// A table's store with the files that were opened in it.
#[derive(Debug)]
pub struct TableFiles {
    store: StoreRef,
    session: Arc<Session>,
    /// Owns what no other handle may see.
    own: Owner,
    /// Owns what all handles to the place share.
    shared: Option<Arc<Owner>>,
    /// What is kept of pages, if it is not the session's: in a pass that comes to each of them once.
    pages: Option<Arc<ReadCache>>,
}

impl TableFiles {
    /// The files of the table at the root of `store`, with a session of their own.
    pub fn new(store: StoreRef) -> Self {
        TableFiles::within(store, Session::new(None, None), None)
    }

    /// The same, in a session; they are shared by all handles of the session to the same `place`.
    pub fn within(store: StoreRef, session: Arc<Session>, place: Option<&str>) -> Self {
        TableFiles {
            store,
            own: session.metadata().owner(),
            shared: place.map(|place| session.place(place)),
            session,
            pages: None,
        }
    }

    /// The same store for a pass that comes to each page once: nothing of the pages is kept, and `bytes` of the files' metadata.
    pub fn for_one_pass(&self, bytes: u64) -> TableFiles {
        let half = usize::try_from(bytes / 2).unwrap_or(usize::MAX);
        let session = Session::for_one_pass(half);
        TableFiles {
            pages: Some(ReadCache::for_one_pass(half)),
            ..TableFiles::within(self.store.clone(), session, None)
        }
    }

    /// The store that holds the table.
    pub fn store(&self) -> &StoreRef {
        &self.store
    }

    /// The session that they are kept in.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The owner of what lies under a base path: which one its number means is a matter of the handle.
    fn owner(&self, base_id: Option<u32>) -> &Owner {
        match &self.shared {
            Some(shared) if base_id.is_none() => shared,
            _ => &self.own,
        }
    }

    /// Opens a data file, or returns the one that is kept.
    pub async fn open(&self, file: &DataFile) -> Result<FileReader> {
        let path = file.location();
        let slot = Slot::File(path.clone(), file.file_size_bytes);
        let owner = match file.version() {
            Ok(FileVersion::V0_1) => &self.own,
            _ => self.owner(file.base_id),
        };
        if let Some(reader) = owner.get::<FileReader>(&slot) {
            // Another handle may have opened it, which counts its own requests.
            return Ok(match &self.shared {
                Some(_) => reader.through(&self.store).unwrap_or_else(|| (*reader).clone()),
                None => (*reader).clone(),
            });
        }
        let (store, size) = (self.store.clone(), file.file_size_bytes);
        let pages = self.pages.as_ref().unwrap_or(self.session.metadata());
        let reader = FileReader::open_with(store, &path, size, pages).await?;
        let bytes = usize::try_from(reader.metadata_bytes()).unwrap_or(usize::MAX);
        owner.put(slot, Arc::new(reader.clone()), bytes);
        Ok(reader)
    }

    /// The deleted rows of a fragment.
    pub async fn deletions(&self, fragment: &Fragment) -> Result<Option<Arc<DeletionVector>>> {
        let Some(file) = fragment.deletion_file() else {
            return Ok(None);
        };
        let path = file.location(fragment.id());
        let (owner, slot) = (self.owner(file.base_id), Slot::Deletions(path.clone()));
        if let Some(vector) = owner.get::<DeletionVector>(&slot) {
            vector.check(file.num_deleted_rows, fragment.physical_rows(), &path)?;
            return Ok(Some(vector));
        }
        let vector = DeletionVector::decode(file.file_type, &self.store.get(&path).await?, &path)?;
        vector.check(file.num_deleted_rows, fragment.physical_rows(), &path)?;
        let vector = Arc::new(vector);
        owner.put(slot, vector.clone(), vector.memory());
        Ok(Some(vector))
    }
}
