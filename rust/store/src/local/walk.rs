//! Listing a folder and the folders in it.

use std::fs::{self, DirEntry, FileType, Metadata};
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::shown;
use crate::error::{Result, StoreError};
use crate::path::is_temporary;
use crate::store::ObjectMeta;

/// The objects below a folder of the root, in byte order of their paths. A folder that is not there holds nothing.
pub(super) fn walk(root: &Path, prefix: &str) -> Result<Vec<ObjectMeta>> {
    let mut found = Vec::new();
    visit(root, prefix, |path, entry, kind| {
        if kind.is_dir() {
            return Ok(true);
        }
        let meta = if kind.is_symlink() {
            fs::metadata(entry.path())?
        } else {
            entry.metadata()?
        };
        if meta.is_file() {
            found.push(describe(path, &meta));
        }
        Ok(meta.is_dir())
    })?;
    found.sort_unstable_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

/// Their paths alone: a look at each file costs more than its name.
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

/// The folders directly in a folder of the root, empty ones among them.
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

/// The temporary files below a folder of the root: those of writers that died, and of writers at work.
pub(super) fn walk_unfinished(root: &Path, prefix: &str) -> Result<Vec<ObjectMeta>> {
    let mut found = Vec::new();
    visit_all(root, prefix, |path, entry, kind| {
        if is_temporary(name_of(&path)) && kind.is_file() {
            found.push(describe(path, &entry.metadata()?));
        }
        // Not through links: what lies behind them is another's.
        Ok(kind.is_dir())
    })?;
    found.sort_unstable_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

/// Shows each entry below a folder but temporary files to `look`, which says whether it is a folder to go into.
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

/// Shows each entry below a folder to `look`, which says whether it is a folder to go into.
fn visit_all(
    root: &Path,
    prefix: &str,
    mut look: impl FnMut(String, &DirEntry, FileType) -> io::Result<bool>,
) -> Result<()> {
    let mut folders = vec![prefix.to_owned()];
    while let Some(folder) = folders.pop() {
        read_folder(&root.join(&folder), &folder, &mut folders, &mut look)?;
    }
    Ok(())
}

fn read_folder(
    full: &Path,
    folder: &str,
    folders: &mut Vec<String>,
    look: &mut impl FnMut(String, &DirEntry, FileType) -> io::Result<bool>,
) -> Result<()> {
    let fail = |error| StoreError::from_io(shown(full), "list", error);
    let entries = match fs::read_dir(full) {
        Ok(entries) => entries,
        Err(error) if is_gone(&error) => return Ok(()),
        Err(error) => return Err(fail(error)),
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(fail(error)),
        };
        // A name that is not text names no object: no path of ours could reach it.
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let kind = entry.file_type().map_err(fail)?;
        match look(format!("{folder}{name}"), &entry, kind) {
            Ok(true) => folders.push(format!("{folder}{name}/")),
            Ok(false) => {}
            // Deleted since, or a link that leads nowhere.
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(StoreError::from_io(shown(&entry.path()), "look up", error)),
        }
    }
    Ok(())
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// What the file system says of a file.
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
