//! A temporary file: it gets all its bytes (synced, if the store is durable) before it gets its name, so that no reader sees a part.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{renameat_with, RenameFlags, CWD};
use rustix::io::Errno;
use uuid::Uuid;

use super::durable::Folders;
use super::shown;
use crate::error::{Result, StoreError};
use crate::path::TEMP_PREFIX;
use crate::store::PutOutcome;

/// A file under a temporary name next to its target, which is deleted on drop unless it was given its name.
#[derive(Debug)]
pub(super) struct Temporary {
    folders: Arc<Folders>,
    file: File,
    path: PathBuf,
    named: bool,
}

impl Temporary {
    /// A new empty file in the folder of `target`, which is created if it is missing.
    pub(super) fn new(folders: &Arc<Folders>, target: &Path) -> Result<Self> {
        if target.is_dir() {
            let message = "cannot write: expected a file or nothing, found a folder of that name";
            return Err(StoreError::io(shown(target), message));
        }
        let folder = target.parent().unwrap_or(Path::new("/"));
        folders.make(folder)?;
        let path = folder.join(format!("{TEMP_PREFIX}{}", Uuid::new_v4().simple()));
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|error| StoreError::from_io(shown(target), "write", error))?;
        Ok(Self {
            folders: Arc::clone(folders),
            file,
            path,
            named: false,
        })
    }

    /// A file with these bytes.
    pub(super) fn with_bytes(folders: &Arc<Folders>, target: &Path, bytes: &[u8]) -> Result<Self> {
        let temporary = Self::new(folders, target)?;
        let written = (&temporary.file).write_all(bytes);
        written.map_err(|error| StoreError::from_io(shown(target), "write", error))?;
        Ok(temporary)
    }

    /// Whether its bytes and its name are synced.
    pub(super) fn is_durable(&self) -> bool {
        self.folders.is_durable()
    }

    /// The open file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Renames the file to `target` and replaces what was there.
    pub(super) fn replace(mut self, target: &Path) -> Result<()> {
        self.folders.sync_bytes(&self.file, target)?;
        fs::rename(&self.path, target).map_err(|error| StoreError::from_io(shown(target), "write", error))?;
        self.named = true;
        self.folders.sync_names(target)
    }

    /// Renames the file to `target` without a sync.
    pub(super) fn replace_unsynced(mut self, target: &Path) -> Result<()> {
        fs::rename(&self.path, target).map_err(|error| StoreError::from_io(shown(target), "write", error))?;
        self.named = true;
        Ok(())
    }

    /// Renames the file to `target`, where nothing is, and syncs it then: a journal that has the file's metadata has its name as well, so
    /// that the sync of the folder has little left to do. After a power cut before the end, a part of the file may be there.
    pub(super) fn name_and_sync(mut self, target: &Path) -> Result<()> {
        fs::rename(&self.path, target).map_err(|error| StoreError::from_io(shown(target), "write", error))?;
        self.named = true;
        let synced = self.folders.sync_bytes(&self.file, target);
        let synced = synced.and_then(|()| self.folders.sync_names(target));
        if synced.is_err() {
            let _ = fs::remove_file(target);
        }
        synced
    }

    /// Links the file as `target` unless something of that name exists.
    pub(super) fn create(mut self, target: &Path) -> Result<PutOutcome> {
        self.folders.sync_bytes(&self.file, target)?;
        match fs::hard_link(&self.path, target) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Over a network file system the link can succeed and its reply be lost; the system then retries and finds our own link.
                if !self.is_same_file(target) {
                    return Ok(PutOutcome::Exists);
                }
            }
            Err(error) if has_no_links(&error) => return self.rename_without_replacing(target),
            Err(error) => return Err(StoreError::from_io(shown(target), "create", error)),
        }
        // The temporary name is removed before the folder is synced, so that one sync covers both. If it stays, it does no harm.
        self.named = true;
        let _ = fs::remove_file(&self.path);
        self.folders.sync_names(target)?;
        Ok(PutOutcome::Created)
    }

    fn is_same_file(&self, target: &Path) -> bool {
        match (self.file.metadata(), fs::symlink_metadata(target)) {
            (Ok(ours), Ok(theirs)) => ours.dev() == theirs.dev() && ours.ino() == theirs.ino(),
            _ => false,
        }
    }

    /// For file systems without hard links. A plain `create_new` followed by writing would show a half-written file to readers and leave it
    /// behind after a crash, so where the system cannot do this either, the write is refused.
    fn rename_without_replacing(mut self, target: &Path) -> Result<PutOutcome> {
        match renameat_with(CWD, &self.path, CWD, target, RenameFlags::NOREPLACE) {
            Ok(()) => {
                self.named = true;
                self.folders.sync_names(target)?;
                Ok(PutOutcome::Created)
            }
            Err(Errno::EXIST) => Ok(PutOutcome::Exists),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                let message =
                    "cannot create: this file system has neither hard links nor renames that do not replace, so that \
                               two writers could not be told apart; keep the table on another one";
                Err(StoreError::unsupported(shown(target), message))
            }
            Err(error) => Err(StoreError::from_io(shown(target), "create", error.into())),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.named {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn has_no_links(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(
        code,
        Some(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK | Errno::XDEV)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_where_there_are_no_links_a_rename_does_not_replace_either() {
        let folder = tempfile::tempdir().unwrap();
        let folders = Arc::new(Folders::new(folder.path(), true));
        let target = folder.path().join("v/1");
        let create = |bytes: &[u8]| {
            let temporary = Temporary::with_bytes(&folders, &target, bytes).unwrap();
            temporary.rename_without_replacing(&target).unwrap()
        };
        assert_eq!(create(b"first"), PutOutcome::Created);
        assert_eq!(create(b"second"), PutOutcome::Exists);
        assert_eq!(fs::read(&target).unwrap(), b"first");
        assert_eq!(fs::read_dir(folder.path().join("v")).unwrap().count(), 1);
    }

    #[test]
    fn test_our_own_link_is_not_a_conflict() {
        let folder = tempfile::tempdir().unwrap();
        let folders = Arc::new(Folders::new(folder.path(), true));
        let target = folder.path().join("1");
        let temporary = Temporary::with_bytes(&folders, &target, b"ours").unwrap();
        fs::hard_link(&temporary.path, &target).unwrap();
        assert_eq!(temporary.create(&target).unwrap(), PutOutcome::Created);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
