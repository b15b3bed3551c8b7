//! Lists a folder recursively.

use std::fs::{self, DirEntry, FileType, Metadata, ReadDir};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::shown;
use crate::error::{Result, StoreError};
use crate::path::is_temporary;
use crate::store::{ObjectMeta, LISTED_AT_ONCE};

/// The objects below a folder of the root, in byte order of their paths; none if there is no such folder.
pub(super) fn walk(root: &Path, prefix: &str) -> Result<Vec<ObjectMeta>> {
    let batches: Result<Vec<_>> = Walk::new(root, prefix).collect();
    let mut found: Vec<ObjectMeta> = batches?.into_iter().flatten().collect();
    found.sort_unstable_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

/// The objects below a folder of the root, in batches, in the file system's order.
pub(super) struct Walk(Entries);

impl Walk {
    pub(super) fn new(root: &Path, prefix: &str) -> Self {
        Walk(Entries::new(root, prefix))
    }

    fn batch(&mut self) -> Result<Vec<ObjectMeta>> {
        let mut found = Vec::new();
        while found.len() < LISTED_AT_ONCE {
            let Some((path, entry, kind)) = self.0.next()? else {
                break;
            };
            if is_temporary(name_of(&path)) {
                continue;
            }
            if kind.is_dir() {
                self.0.go_into(&path);
                continue;
            }
            let meta = match kind.is_symlink() {
                true => fs::metadata(entry.path()),
                false => entry.metadata(),
            };
            match meta {
                Ok(meta) if meta.is_file() => found.push(describe(path, &meta)),
                Ok(meta) if meta.is_dir() => self.0.go_into(&path),
                Ok(_) => {}
                Err(error) => not_gone(&entry, error)?,
            }
        }
        Ok(found)
    }
}

impl Iterator for Walk {
    type Item = Result<Vec<ObjectMeta>>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.batch() {
            Ok(found) => (!found.is_empty()).then_some(Ok(found)),
            Err(error) => {
                self.0.end();
                Some(Err(error))
            }
        }
    }
}

/// The paths alone, without a `stat` of each file.
pub(super) fn walk_paths(root: &Path, prefix: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    visit(root, prefix, |path, entry, kind| {
        let kind = if kind.is_symlink() {
            fs::metadata(entry.path())?.file_type()
        } else {
            kind
        };
        if kind.is_file() {
            found.push(path);
        }
        Ok(kind.is_dir())
    })?;
    found.sort_unstable();
    Ok(found)
}

/// The folders directly in a folder of the root, empty ones included.
pub(super) fn folders(root: &Path, prefix: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    visit(root, prefix, |path, entry, kind| {
        if kind.is_dir() || (kind.is_symlink() && fs::metadata(entry.path())?.is_dir()) {
            found.push(format!("{path}/"));
        }
        Ok(false)
    })?;
    found.sort_unstable();
    Ok(found)
}

/// The temporary files below a folder of the root: those of dead writers, and those of writers that are still at work.
pub(super) fn walk_unfinished(root: &Path, prefix: &str) -> Result<Vec<ObjectMeta>> {
    let mut found = Vec::new();
    visit_all(root, prefix, |path, entry, kind| {
        if is_temporary(name_of(&path)) && kind.is_file() {
            found.push(describe(path, &entry.metadata()?));
        }
        // Symbolic links are not followed: what they point to may belong to others.
        Ok(kind.is_dir())
    })?;
    found.sort_unstable_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

/// Calls `look` with each entry below a folder except temporary files; it returns whether to descend into the entry.
fn visit(
    root: &Path,
    prefix: &str,
    mut look: impl FnMut(String, &DirEntry, FileType) -> io::Result<bool>,
) -> Result<()> {
    visit_all(root, prefix, |path, entry, kind| {
        if is_temporary(name_of(&path)) {
            return Ok(false);
        }
        look(path, entry, kind)
    })
}

fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Calls `look` with each entry below a folder; it returns whether to descend into the entry.
fn visit_all(
    root: &Path,
    prefix: &str,
    mut look: impl FnMut(String, &DirEntry, FileType) -> io::Result<bool>,
) -> Result<()> {
    let mut entries = Entries::new(root, prefix);
    while let Some((path, entry, kind)) = entries.next()? {
        match look(path.clone(), &entry, kind) {
            Ok(true) => entries.go_into(&path),
            Ok(false) => {}
            Err(error) => not_gone(&entry, error)?,
        }
    }
    Ok(())
}

/// Entries of folders, one folder after the other.
struct Entries {
    root: PathBuf,
    folders: Vec<String>,
    current: Option<(String, ReadDir)>,
}

impl Entries {
    fn new(root: &Path, prefix: &str) -> Self {
        Entries {
            root: root.to_owned(),
            folders: vec![prefix.to_owned()],
            current: None,
        }
    }

    fn go_into(&mut self, path: &str) {
        self.folders.push(format!("{path}/"));
    }

    fn end(&mut self) {
        self.folders.clear();
        self.current = None;
    }

    fn next(&mut self) -> Result<Option<(String, DirEntry, FileType)>> {
        loop {
            let Some((folder, entries)) = &mut self.current else {
                let Some(folder) = self.folders.pop() else {
                    return Ok(None);
                };
                let full = self.root.join(&folder);
                match fs::read_dir(&full) {
                    Ok(entries) => self.current = Some((folder, entries)),
                    Err(error) if is_gone(&error) => {}
                    Err(error) => return Err(StoreError::from_io(shown(&full), "list", error)),
                }
                continue;
            };
            let entry = match entries.next() {
                Some(Ok(entry)) => entry,
                Some(Err(error)) if !is_gone(&error) => {
                    return Err(StoreError::from_io(shown(&self.root.join(folder)), "list", error));
                }
                _ => {
                    self.current = None;
                    continue;
                }
            };
            // A name that is not UTF-8 names no object: no path could reach it.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let kind = entry
                .file_type()
                .map_err(|error| StoreError::from_io(shown(&self.root.join(&*folder)), "list", error))?;
            return Ok(Some((format!("{folder}{name}"), entry, kind)));
        }
    }
}

/// The error, unless the entry was deleted meanwhile or is a dangling link.
fn not_gone(entry: &DirEntry, error: io::Error) -> Result<()> {
    match is_gone(&error) {
        true => Ok(()),
        false => Err(StoreError::from_io(shown(&entry.path()), "look up", error)),
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A file's metadata as an [`ObjectMeta`].
pub(super) fn describe(path: String, meta: &Metadata) -> ObjectMeta {
    let last_modified_us = meta.modified().ok().and_then(micros_since_epoch);
    ObjectMeta {
        path,
        size: meta.len(),
        last_modified_us,
    }
}

fn micros_since_epoch(time: SystemTime) -> Option<i64> {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).ok(),
        Err(before) => i64::try_from(before.duration().as_micros()).ok().map(|micros| -micros),
    }
}
