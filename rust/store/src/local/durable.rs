//! Durability: the syncs of files and folders after which a name survives a power cut.
//!
//! A file's bytes are durable once the file is synced; its name is durable once the folder that holds the name is synced; the folder's own
//! name needs a sync of its parent, and so on up. A folder that another process just made may not be durable yet, so each handle syncs the
//! folders on the path to a file the first time it writes there, and again whenever it had to make a folder itself. A sync of the root holds
//! for all folders that are in it.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::shown;
use crate::error::{Result, StoreError};

/// Names in the root that are looked at.
const LOOKED_AT: usize = 64;

/// The folders of one store handle.
#[derive(Debug)]
pub(super) struct Folders {
    root: PathBuf,
    durable: bool,
    /// Folders whose own names are known to be on stable storage.
    safe: Mutex<HashSet<PathBuf>>,
}

impl Folders {
    pub(super) fn new(root: &Path, durable: bool) -> Self {
        Self {
            root: root.to_owned(),
            durable,
            safe: Mutex::default(),
        }
    }

    /// Whether writes are synced.
    pub(super) fn is_durable(&self) -> bool {
        self.durable
    }

    /// Creates the folder and its parents where they are missing.
    pub(super) fn make(&self, folder: &Path) -> Result<()> {
        if !self.durable {
            return fs::create_dir_all(folder).map_err(|error| sort_folder_error(folder, error));
        }
        let mut missing = Vec::new();
        for above in folder.ancestors() {
            match fs::create_dir(above) {
                Ok(()) => {
                    missing.push(above);
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists || above.is_dir() => break,
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(above),
                Err(error) => return Err(sort_folder_error(above, error)),
            }
        }
        // From the top down; another process may create the same folders meanwhile.
        for made in missing.iter().rev() {
            match fs::create_dir(made) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(sort_folder_error(made, error))
                }
                _ => self.sync_above(made)?,
            }
        }
        self.sync_way_to(folder)
    }

    fn sync_way_to(&self, folder: &Path) -> Result<()> {
        for way in folder.ancestors().take_while(|way| way.starts_with(&self.root)) {
            let known = self.safe.lock().unwrap_or_else(PoisonError::into_inner).contains(way);
            if !known {
                self.sync_above(way)?;
            }
        }
        Ok(())
    }

    /// Makes the folder's name durable by a sync of its parent.
    fn sync_above(&self, folder: &Path) -> Result<()> {
        // Looked at before the sync: their names are durable after it.
        let mut durable = vec![folder.to_owned()];
        if let Some(above) = folder.parent() {
            if above == self.root {
                durable.extend(first_folders(above));
            }
            match sync(above) {
                Ok(()) => {}
                // Above the root there may be folders without read permission, whose names are not this store's to make durable.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !above.starts_with(&self.root) => {}
                Err(error) => return Err(StoreError::from_io(shown(above), "sync the folder", error)),
            }
        }
        self.safe.lock().unwrap_or_else(PoisonError::into_inner).extend(durable);
        Ok(())
    }

    /// Makes the names in the folder of this file durable.
    pub(super) fn sync_names(&self, file: &Path) -> Result<()> {
        match file.parent() {
            Some(folder) if self.durable => {
                sync(folder).map_err(|error| StoreError::from_io(shown(folder), "sync the folder", error))
            }
            _ => Ok(()),
        }
    }

    /// Makes the bytes of this file durable.
    pub(super) fn sync_bytes(&self, file: &File, path: &Path) -> Result<()> {
        if !self.durable {
            return Ok(());
        }
        file.sync_all()
            .map_err(|error| StoreError::from_io(shown(path), "sync", error))
    }

    /// Removes a file; a missing one is no error.
    pub(super) fn remove(&self, path: &Path) -> Result<()> {
        match unlink(path)? {
            true => self.sync_names(path),
            false => Ok(()),
        }
    }

    /// Removes files; each folder that they are in is synced once, not once per file.
    pub(super) fn remove_all(&self, paths: &[PathBuf]) -> Result<()> {
        let mut changed = HashMap::new();
        let mut removed = Ok(());
        for path in paths {
            match unlink(path) {
                Ok(true) => {
                    changed.insert(path.parent(), path);
                }
                Ok(false) => {}
                Err(error) => {
                    removed = Err(error);
                    break;
                }
            }
        }
        for path in changed.into_values() {
            self.sync_names(path)?;
        }
        removed
    }
}

/// Unlinks a file; returns whether there was one.
fn unlink(path: &Path) -> Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        // A folder is no object.
        Err(_) if path.is_dir() => Ok(false),
        Err(error) => Err(StoreError::from_io(shown(path), "delete", error)),
    }
}

/// Some folders in a folder: all of them, if it holds few names.
fn first_folders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let entries = entries.take(LOOKED_AT).flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

fn sync(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some network file systems cannot sync a folder.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

fn sort_folder_error(folder: &Path, error: io::Error) -> StoreError {
    if error.kind() == io::ErrorKind::AlreadyExists {
        let message =
            "cannot make the folder: expected a folder, found a file of that name; remove it or write elsewhere";
        return StoreError::io(shown(folder), message);
    }
    StoreError::from_io(shown(folder), "make the folder", error)
}
