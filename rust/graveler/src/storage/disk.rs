//! The disk cache: whole tables in a local folder, bounded in bytes, which outlives the process.
//!
//! ```text
//! <folder>/<64 hex digits>      CRC-32C of the name and the table (u32, little endian) | the table
//! ```
//!
//! Tables are immutable, so a file of an id is valid or corrupt; a corrupt one is treated as missing. Several processes may share a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use bytes::Bytes;

use crate::id::TableId;

/// A folder of tables.
#[derive(Debug)]
pub(super) struct DiskCache {
    folder: PathBuf,
    capacity: u64,
    /// Bytes that this process has put since it last checked the folder's size.
    put: AtomicU64,
    drawn: AtomicU64,
}

impl DiskCache {
    /// A cache of at most about `capacity` bytes in a folder, which the first put creates.
    pub(super) fn new(folder: &Path, capacity: u64) -> Self {
        DiskCache {
            folder: folder.to_owned(),
            capacity,
            // So that the first put checks the folder's size.
            put: AtomicU64::new(capacity),
            drawn: AtomicU64::new(0),
        }
    }

    /// A table, if it is cached and valid.
    pub(super) fn get(&self, id: &TableId) -> Option<Bytes> {
        let path = self.folder.join(id.as_str());
        // A file larger than the whole cache was not put by one.
        fs::metadata(&path)
            .ok()
            .filter(|about| about.len() <= self.capacity.saturating_add(4))?;
        let file = Bytes::from(fs::read(&path).ok()?);
        let Some(table) = decode(id, &file) else {
            // Half-written before a crash, corrupt, or foreign: the table is fetched again.
            let _ = fs::remove_file(&path);
            return None;
        };
        // Eviction goes by the time of the last use.
        let _ = fs::File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(SystemTime::now()));
        Some(table)
    }

    /// Caches a table. Errors are ignored, as they only cost a later fetch.
    pub(super) fn put(&self, id: &TableId, table: &[u8]) {
        if (table.len() as u64) > self.capacity || self.write(id, table).is_err() {
            return;
        }
        let put = self.put.fetch_add(table.len() as u64, Relaxed);
        if put >= self.capacity / 8 {
            self.put.store(0, Relaxed);
            self.evict();
        }
    }

    fn write(&self, id: &TableId, table: &[u8]) -> std::io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let number = self.drawn.fetch_add(1, Relaxed);
        let temporary = self.folder.join(format!("{}-{number}.tmp", std::process::id()));
        let mut bytes = Vec::with_capacity(table.len() + 4);
        bytes.extend_from_slice(&checksum(id, table).to_le_bytes());
        bytes.extend_from_slice(table);
        let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, self.folder.join(id.as_str())));
        if written.is_err() {
            // Perhaps the disk is full: no half-written file stays.
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// Evicts the least recently used tables until three quarters of the capacity are left.
    fn evict(&self) {
        let Ok(listed) = fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = listed
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let about = entry.metadata().ok()?;
                Some((about.modified().ok()?, about.len(), entry.path()))
            })
            .collect();
        let mut size: u64 = files.iter().map(|(_, size, _)| size).sum();
        if size <= self.capacity {
            return;
        }
        files.sort();
        for (_, length, path) in files {
            if size <= self.capacity / 4 * 3 {
                break;
            }
            if fs::remove_file(path).is_ok() {
                size = size.saturating_sub(length);
            }
        }
    }
}

fn checksum(id: &TableId, table: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(id.as_str().as_bytes()), table)
}

/// The table in a file's bytes, if its checksum matches.
pub(crate) fn decode(id: &TableId, file: &Bytes) -> Option<Bytes> {
    let (said, table) = file.split_first_chunk::<4>()?;
    (u32::from_le_bytes(*said) == checksum(id, table)).then(|| file.slice(4..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_tables_come_back_and_damaged_ones_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(&folder.path().join("cache"), 10_000);
        let id = TableId::of_hash(&[1; 32]);
        assert!(cache.get(&id).is_none());
        cache.put(&id, b"table");
        assert_eq!(cache.get(&id).unwrap().as_ref(), b"table");
        let path = folder.path().join("cache").join(id.as_str());
        let mut bytes = fs::read(&path).unwrap();
        bytes[5] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert!(cache.get(&id).is_none());
        assert!(!path.exists());
    }

    #[test]
    fn test_a_table_under_the_name_of_another_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path(), 10_000);
        let [one, other] = [1, 2].map(|n| TableId::of_hash(&[n; 32]));
        cache.put(&one, b"table");
        fs::rename(folder.path().join(one.as_str()), folder.path().join(other.as_str())).unwrap();
        assert!(cache.get(&other).is_none());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn test_a_full_disk_costs_no_more_than_the_cache() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path(), 10_000);
        let id = TableId::of_hash(&[1; 32]);
        let first = folder.path().join(format!("{}-0.tmp", std::process::id()));
        std::os::unix::fs::symlink("/dev/full", &first).unwrap();
        cache.put(&id, b"table");
        assert!(cache.get(&id).is_none() && !first.is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        cache.put(&id, b"table");
        assert_eq!(cache.get(&id).unwrap().as_ref(), b"table");
    }

    #[test]
    fn test_a_folder_stays_within_its_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path(), 10_000);
        for n in 0..100u8 {
            cache.put(&TableId::of_hash(&[n; 32]), &[n; 1000]);
        }
        let size: u64 = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!((3000..=12_500).contains(&size), "{size}");
        assert!(cache.get(&TableId::of_hash(&[99; 32])).is_some());
        cache.put(&TableId::of_hash(&[200; 32]), &[0; 20_000]);
        assert!(cache.get(&TableId::of_hash(&[200; 32])).is_none());
    }
}
