//! Collects the addresses of rows to delete from a scan, and stages the deletion files of their fragments.
//!
//! ```text
//! deleted already (the version's)   ..x.......
//! collected                         x.x...x...
//! staged: one file for both         x.x...x...   2 rows deleted
//! ```
//!
//! A fragment that loses its last row gets no file but is removed from the table. Files are staged before the commit, under random names,
//! and are orphans until a manifest names them.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use roaring::RoaringBitmap;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::DeletionVector;
use crate::error::{Result, TableError};
use crate::fragment::{DeletionFile, Fragment};
use crate::manifest::Manifest;
use crate::read::TableFiles;

/// Deletion files that are read and written concurrently.
const FILES: usize = 32;

/// Rows of one version, as a roaring bitmap for each fragment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowsToDelete {
    fragments: BTreeMap<u64, RoaringBitmap>,
}

/// The fragments that rows were deleted from, after the deletion.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StagedDeletions {
    /// Fragments with their new deletion files, in the version's order.
    pub updated: Vec<Fragment>,
    /// The ids of fragments that lost all rows, in the same order.
    pub removed: Vec<u64>,
    /// Rows that were not deleted before.
    pub num_deleted: u64,
}

impl RowsToDelete {
    /// Adds the rows at `addresses` (fragment id << 32 | offset) and returns how many of them it did not hold yet. Ascending
    /// addresses are the fastest.
    pub fn add(&mut self, addresses: &[u64]) -> u64 {
        let mut added = 0;
        for rows in addresses.chunk_by(|left, right| left >> 32 == right >> 32) {
            let Some(first) = rows.first() else { continue };
            let offsets = self.fragments.entry(first >> 32).or_default();
            for run in rows.chunk_by(|left, right| left.checked_add(1) == Some(*right)) {
                let (Some(start), Some(end)) = (run.first(), run.last()) else {
                    continue;
                };
                added += match run.len() {
                    1 => u64::from(offsets.insert(offset(*start))),
                    _ => offsets.insert_range(offset(*start)..=offset(*end)),
                };
            }
        }
        added
    }

    /// The offsets of the rows in one fragment as a portable roaring bitmap, the form in which an Update lists the rows it changed in
    /// place.
    pub fn encode_offsets(&self, fragment_id: u64) -> Vec<u8> {
        let rows = self.fragments.get(&fragment_id).cloned().unwrap_or_default();
        let mut out = Vec::with_capacity(rows.serialized_size());
        // Writing to memory does not fail.
        let _ = rows.serialize_into(&mut out);
        out
    }

    /// How many rows it holds.
    pub fn len(&self) -> u64 {
        self.fragments.values().map(RoaringBitmap::len).sum()
    }

    /// Whether it holds no row.
    pub fn is_empty(&self) -> bool {
        self.fragments.values().all(RoaringBitmap::is_empty)
    }

    /// Writes deletion files for these rows and those that are already deleted in `manifest`'s version. Rows that are already deleted are
    /// not counted.
    pub async fn stage(&self, files: &Arc<TableFiles>, manifest: &Manifest) -> Result<StagedDeletions> {
        let mut touched = Vec::with_capacity(self.fragments.len());
        for (place, summary) in manifest.fragment_sizes()?.into_iter().enumerate() {
            if let Some(rows) = self.fragments.get(&summary.id) {
                touched.extend(manifest.fragment_at(place)?.map(|fragment| (fragment, rows)));
            }
        }
        if touched.len() != self.fragments.len() {
            return Err(self.foreign(manifest, &touched));
        }
        let version = manifest.version();
        let has_failed = AtomicBool::new(false);
        let tasks = touched.into_iter().map(|(fragment, rows)| {
            let (files, rows, runtime) = (files.clone(), rows.clone(), Handle::current());
            // A local store's writes and flushes block the thread: on separate threads, many files wait for the disk concurrently.
            let task = (!has_failed.load(Relaxed))
                .then(|| spawn_blocking(move || runtime.block_on(stage_one(&files, fragment, rows, version))));
            async move {
                let Some(task) = task else { return Ok(None) };
                let staged = task
                    .await
                    .map_err(|error| TableError::task_failed("deletion file", &error))?;
                staged.map(Some)
            }
        });
        let ended = stream::iter(tasks)
            .buffered(FILES)
            .inspect(|one| has_failed.store(has_failed.load(Relaxed) || one.is_err(), Relaxed))
            .collect::<Vec<Result<Option<Staged>>>>();
        let ended = ended.await;
        if ended.iter().any(Result::is_err) {
            // Nobody learns of what the others have written.
            for one in ended.iter().flatten().flatten() {
                one.discard(files).await;
            }
        }
        let staged: Vec<Option<Staged>> = ended.into_iter().collect::<Result<_>>()?;
        let mut out = StagedDeletions::default();
        for one in staged.into_iter().flatten() {
            out.num_deleted += one.num_deleted;
            match one.left {
                Left::Rows(fragment) => out.updated.push(fragment),
                Left::Nothing(id) => out.removed.push(id),
                Left::Unchanged => {}
            }
        }
        Ok(out)
    }

    fn foreign(&self, manifest: &Manifest, touched: &[(Fragment, &RoaringBitmap)]) -> TableError {
        let known: Vec<u64> = touched.iter().map(|(fragment, _)| fragment.id()).collect();
        let missing = self.fragments.keys().find(|id| !known.contains(id));
        TableError::invalid(format!(
            "expected rows of version {}, found rows of fragment {}, which it does not have; read them from this version",
            manifest.version(),
            missing.copied().unwrap_or_default()
        ))
    }
}

/// The offset part of a row address.
#[allow(clippy::cast_possible_truncation)] // The lower half of the address is meant.
fn offset(address: u64) -> u32 {
    address as u32
}

enum Left {
    Rows(Fragment),
    Nothing(u64),
    Unchanged,
}

struct Staged {
    left: Left,
    num_deleted: u64,
}

impl Staged {
    /// Deletes its file, as well as that goes: what is left is an orphan.
    async fn discard(&self, files: &TableFiles) {
        if let Left::Rows(fragment) = &self.left {
            if let Some(file) = fragment.deletion_file() {
                let _ = files.store().delete(&file.location(fragment.id())).await;
            }
        }
    }
}

async fn stage_one(files: &TableFiles, fragment: Fragment, rows: RoaringBitmap, version: u64) -> Result<Staged> {
    let id = fragment.id();
    let physical_rows = fragment.physical_rows().ok_or_else(|| {
        TableError::unsupported(format!(
            "rows of fragment {id} cannot be deleted: its old writer did not note how many it has; write the table anew"
        ))
    })?;
    if let Some(last) = rows.max().filter(|last| u64::from(*last) >= physical_rows) {
        return Err(TableError::invalid(format!(
            "expected rows below {physical_rows} of fragment {id}, found row {last}"
        )));
    }
    let before = files.deletions(&fragment).await?;
    let all = match &before {
        Some(before) => DeletionVector::new(before.rows() | rows),
        None => DeletionVector::new(rows),
    };
    let num_deleted = all.len() - before.map_or(0, |before| before.len());
    let left = if num_deleted == 0 {
        Left::Unchanged
    } else if all.len() == physical_rows {
        Left::Nothing(id)
    } else {
        Left::Rows(write_deletions(files, &fragment, &all, version).await?)
    };
    Ok(Staged { left, num_deleted })
}

/// Writes a deletion file for a fragment and returns the fragment with it in place of the one that it had.
pub(crate) async fn write_deletions(
    files: &TableFiles,
    fragment: &Fragment,
    rows: &DeletionVector,
    read_version: u64,
) -> Result<Fragment> {
    let (file_type, bytes) = rows.encode()?;
    let file = DeletionFile {
        file_type,
        read_version,
        id: Uuid::new_v4().as_u64_pair().0,
        num_deleted_rows: Some(rows.len()),
        base_id: None,
    };
    let path = file.location(fragment.id());
    if let Err(error) = files.store().put(&path, bytes).await {
        // It may be there, where the reply was lost.
        let _ = files.store().delete(&path).await;
        return Err(error.into());
    }
    Ok(fragment.clone().with_deletion_file(Some(file)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn test_an_address_at_the_end_of_a_fragment_does_not_run_on_into_the_next() {
        let mut rows = RowsToDelete::default();
        let end = (3 << 32) | u64::from(u32::MAX);
        assert_eq!(rows.add(&[end - 1, end, end + 1, end + 2]), 4);
        assert_eq!(rows.fragments.keys().copied().collect::<Vec<_>>(), [3, 4]);
        assert_eq!(rows.fragments[&4].iter().collect::<Vec<_>>(), [0, 1]);
    }

    proptest! {
        #[test]
        fn test_rows_are_a_set_of_addresses(batches in proptest::collection::vec(
            proptest::collection::vec((0u64..4, 0u64..40).prop_map(|(f, o)| f << 32 | o), 0..60), 0..6),
        ) {
            let (mut rows, mut model) = (RowsToDelete::default(), BTreeSet::new());
            for batch in batches {
                let new = batch.iter().collect::<BTreeSet<_>>().into_iter().filter(|a| !model.contains(*a)).count();
                prop_assert_eq!(rows.add(&batch), new as u64);
                model.extend(batch);
            }
            prop_assert_eq!(rows.len(), model.len() as u64);
            prop_assert_eq!(rows.is_empty(), model.is_empty());
            let found = rows.fragments.iter().flat_map(|(id, rows)| rows.iter().map(move |row| id << 32 | u64::from(row)));
            prop_assert_eq!(found.collect::<Vec<_>>(), model.into_iter().collect::<Vec<_>>());
        }
    }
}
