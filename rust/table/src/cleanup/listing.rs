//! A listing of a table's files, and the orphans among them.

use esker_store::store::{ObjectMeta, StoreRef};

use super::leftover::{Leftover, LeftoverKind};
use super::references::{FileReferences, Names};
use crate::error::Result;
use crate::transaction::TRANSACTIONS_DIR;

/// The folders that a table's writers stage files in, and `_versions`.
const FOLDERS: [&str; 5] = ["data/", "_deletions/", "_transactions/", "_indices/", "_versions/"];

/// The prefix of temporary files of both Lance and esker.
const UNFINISHED_PREFIX: &str = ".tmp";

/// The files of a table at one moment. Must be listed before the versions are, so that files committed in between are referred to.
#[derive(Debug)]
pub struct FileListing {
    files: Vec<ObjectMeta>,
    unfinished: Vec<ObjectMeta>,
}

impl FileListing {
    /// Lists the folders that writers stage files in, or only one of them, which ends in `/`.
    pub async fn read(store: &StoreRef, only: Option<&str>) -> Result<Self> {
        let mut listing = Self {
            files: Vec::new(),
            unfinished: Vec::new(),
        };
        for folder in FOLDERS
            .into_iter()
            .filter(|folder| only.is_none_or(|only| only == *folder))
        {
            listing.files.extend(store.list(folder).await?);
            listing.unfinished.extend(store.list_unfinished(folder).await?);
        }
        Ok(listing)
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.files.len().saturating_add(self.unfinished.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The orphans, in the order of their folders and paths. Manifests are not among them.
    pub fn leftovers(&self, references: &FileReferences) -> Vec<Leftover> {
        let named = self.files.iter().filter_map(|file| {
            let kind = kind_of(&file.path)?;
            (!refers(references.kept(), kind, &file.path)).then(|| Leftover {
                kind,
                path: file.path.clone(),
                size: file.size,
                last_modified_us: file.last_modified_us,
                is_dropped: refers(references.dropped(), kind, &file.path),
            })
        });
        let unfinished = self.unfinished.iter().map(|file| Leftover {
            kind: LeftoverKind::Unfinished,
            path: file.path.clone(),
            size: file.size,
            last_modified_us: file.last_modified_us,
            is_dropped: false,
        });
        named.chain(unfinished).collect()
    }
}

/// The kind of a file by its path; `None` if no writer of tables makes such a path.
fn kind_of(path: &str) -> Option<LeftoverKind> {
    let (folder, rest) = path.split_once('/')?;
    let name = rest.rsplit_once('/').map_or(rest, |(_, name)| name);
    let ends_in = |extension: &str| name.strip_suffix(extension).is_some_and(|stem| !stem.is_empty());
    let is_nested = rest.contains('/');
    match folder {
        // All files in the folder of an index belong to the index.
        "_indices" => Some(LeftoverKind::Index),
        "data" | "_deletions" | "_transactions" | "_versions" if name.starts_with(UNFINISHED_PREFIX) && !is_nested => {
            Some(LeftoverKind::Unfinished)
        }
        "data" if ends_in(".lance") || (is_nested && ends_in(".blob")) => Some(LeftoverKind::Data),
        "_deletions" if ends_in(".arrow") || ends_in(".bin") => Some(LeftoverKind::Deletion),
        TRANSACTIONS_DIR if ends_in(".txn") => Some(LeftoverKind::Transaction),
        _ => None,
    }
}

fn refers(names: &Names, kind: LeftoverKind, path: &str) -> bool {
    match kind {
        LeftoverKind::Data => match path.strip_suffix(".blob") {
            // The blobs of a data file lie in a folder of its name.
            Some(_) => blob_owner(path).is_some_and(|owner| names.data.contains(&owner)),
            None => names.data.contains(path),
        },
        LeftoverKind::Deletion => names.deletions.contains(path),
        LeftoverKind::Transaction => names.transactions.contains(path),
        LeftoverKind::Index => path
            .split('/')
            .nth(1)
            .is_some_and(|uuid| names.indices.contains(&uuid.to_ascii_lowercase())),
        LeftoverKind::Unfinished => false,
    }
}

/// `data/{stem}.lance` for `data/{stem}/{id}.blob`.
fn blob_owner(path: &str) -> Option<String> {
    let (folder, _) = path.rsplit_once('/')?;
    Some(format!("{folder}.lance"))
}
