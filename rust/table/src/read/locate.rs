//! Locates rows by id.
//!
//! The id of an updated row is listed twice: in its old fragment, where the row is deleted, and in its new one. Deletion files are read
//! only where they decide: a copy in a fragment without deletions is live, whatever other copies there are.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};

use super::files::TableFiles;
use crate::deletion::DeletionVector;
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::manifest::Manifest;
use crate::row_ids::Candidate;

/// Deletion files that are read concurrently.
const READS: usize = 64;

/// The located rows.
#[derive(Debug)]
pub struct Located {
    /// The row of each id; `None` if no live row of the version has it.
    pub rows: Vec<Option<Candidate>>,
    /// The fragments of those rows, by their place in the manifest.
    pub fragments: HashMap<u32, Fragment>,
}

/// The candidates: the rows that fragments list under each id, live or deleted.
struct Listed {
    candidates: Vec<Candidate>,
    /// The end of each id's candidates.
    ends: Vec<usize>,
}

impl Listed {
    fn of_each(&self) -> impl Iterator<Item = &[Candidate]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let of = |(start, end): (usize, &usize)| self.candidates.get(start..*end).unwrap_or_default();
        starts.zip(&self.ends).map(of)
    }
}

/// The deletions of a fragment, as far as they are known.
#[derive(Debug, Clone, Default)]
enum Deletions {
    #[default]
    Unknown,
    Nothing,
    Some(Arc<DeletionVector>),
}

impl Deletions {
    fn hide(&self, offset: u32) -> bool {
        match self {
            Self::Some(deletions) => deletions.contains(offset),
            Self::Nothing | Self::Unknown => false,
        }
    }
}

/// Finds the rows of `ids`: stable row ids where the table has them, else row addresses.
pub async fn locate(files: &Arc<TableFiles>, manifest: &Manifest, ids: &[u64]) -> Result<Located> {
    let listed = if manifest.has_stable_row_ids() {
        by_index(files, manifest, ids).await?
    } else {
        by_address(manifest, ids)?
    };
    let mut fragments = HashMap::new();
    let mut deletions = vec![Deletions::Unknown; manifest.num_fragments()];
    for candidate in &listed.candidates {
        let Some(slot) = deletions.get_mut(candidate.fragment as usize) else {
            continue;
        };
        if matches!(slot, Deletions::Unknown) && !fragments.contains_key(&candidate.fragment) {
            let Some(fragment) = manifest.fragment_at(candidate.fragment as usize)? else {
                continue;
            };
            if fragment.deletion_file().is_none() {
                *slot = Deletions::Nothing;
            }
            fragments.insert(candidate.fragment, fragment);
        }
    }
    let undeleted =
        |candidate: &&Candidate| matches!(deletions.get(candidate.fragment as usize), Some(Deletions::Nothing));
    let mut wanted = BTreeSet::new();
    for candidates in listed.of_each().filter(|of| !of.iter().any(|one| undeleted(&one))) {
        wanted.extend(candidates.iter().map(|candidate| candidate.fragment));
    }
    for (place, vector) in read_deletions(files, &fragments, wanted).await? {
        if let Some(slot) = deletions.get_mut(place as usize) {
            *slot = vector.map_or(Deletions::Nothing, Deletions::Some);
        }
    }
    let hidden = |row: &&Candidate| {
        deletions
            .get(row.fragment as usize)
            .is_some_and(|of| of.hide(row.offset))
    };
    let sure = |row: &&Candidate| matches!(deletions.get(row.fragment as usize), Some(Deletions::Nothing));
    let choose = |candidates: &[Candidate]| match candidates {
        [] => None,
        [only] => Some(only).filter(|row| !hidden(row)).copied(),
        // If one copy is certainly live, the deletions of the others may not have been read.
        several => several
            .iter()
            .find(sure)
            .or_else(|| several.iter().find(|row| !hidden(row)))
            .copied(),
    };
    let rows: Vec<Option<Candidate>> = listed.of_each().map(choose).collect();
    Ok(Located { rows, fragments })
}

async fn by_index(files: &TableFiles, manifest: &Manifest, ids: &[u64]) -> Result<Listed> {
    let index = manifest.row_id_index(files.store()).await?;
    let mut listed = Listed {
        candidates: Vec::with_capacity(ids.len()),
        ends: Vec::with_capacity(ids.len()),
    };
    let mut found = Vec::new();
    for id in ids {
        index.candidates(*id, &mut found);
        listed.candidates.extend_from_slice(&found);
        listed.ends.push(listed.candidates.len());
    }
    Ok(listed)
}

fn by_address(manifest: &Manifest, ids: &[u64]) -> Result<Listed> {
    let mut places: HashMap<u64, Option<(u32, u64)>> = ids.iter().map(|id| (id >> 32, None)).collect();
    for (place, fragment) in manifest.fragment_sizes()?.into_iter().enumerate() {
        if let Some(slot) = places.get_mut(&fragment.id) {
            // Old writers did not note the number of rows: it is read from the files.
            let rows = Some(fragment.physical_rows)
                .filter(|rows| *rows != 0)
                .unwrap_or(u64::MAX);
            *slot = u32::try_from(place).ok().map(|place| (place, rows));
        }
    }
    let mut listed = Listed {
        candidates: Vec::with_capacity(ids.len()),
        ends: Vec::with_capacity(ids.len()),
    };
    for id in ids {
        let offset = u32::try_from(id & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        if let Some((fragment, rows)) = places.get(&(id >> 32)).copied().flatten() {
            if u64::from(offset) < rows {
                listed.candidates.push(Candidate { fragment, offset });
            }
        }
        listed.ends.push(listed.candidates.len());
    }
    Ok(listed)
}

async fn read_deletions(
    files: &Arc<TableFiles>,
    fragments: &HashMap<u32, Fragment>,
    wanted: BTreeSet<u32>,
) -> Result<Vec<(u32, Option<Arc<DeletionVector>>)>> {
    let reads = wanted.into_iter().filter_map(|place| {
        let (fragment, files) = (fragments.get(&place)?.clone(), files.clone());
        Some(async move {
            let task = tokio::spawn(async move { files.deletions(&fragment).await });
            let vector = task.await.map_err(|e| TableError::task_failed("deletion file", &e))??;
            Ok((place, vector))
        })
    });
    stream::iter(reads.collect::<Vec<_>>())
        .buffer_unordered(READS)
        .try_collect()
        .await
}
