//! Lists `_delta_log`: commits, checkpoints of every kind, checksums.
//!
//! ```text
//! 00000000000000000010.json                                  a commit
//! 00000000000000000010.checkpoint.parquet                    a checkpoint in one file
//! 00000000000000000010.checkpoint.0000000001.0000000003.parquet   one of three parts
//! 00000000000000000010.checkpoint.{uuid}.parquet or .json    a checkpoint of version 2
//! 00000000000000000010.crc                                   the state's checksum
//! _last_checkpoint                                           a hint
//! ```
//!
//! Spec: "File Types" and "Checkpoints". Other names are ignored.

use std::collections::{BTreeMap, BTreeSet};

use esker_store::StoreRef;
use serde::Deserialize;

use crate::error::{DeltaError, Result};

/// The folder of the log.
pub(crate) const LOG: &str = "_delta_log/";
const HINT: &str = "_delta_log/_last_checkpoint";
/// The most parts of a checkpoint: a forged file name must not make us look for parts without end.
const MAX_PARTS: u32 = 100_000;
/// The leading digits that a block of a hundred versions shares.
const NAMES_OF_A_BLOCK: usize = 18;

/// The files of one checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckpointFiles {
    pub(crate) version: u64,
    pub(crate) files: Vec<String>,
}

/// The files of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogListing {
    /// Versions that have a commit.
    pub commits: BTreeSet<u64>,
    /// Complete checkpoints, newest first.
    pub(crate) checkpoints: Vec<CheckpointFiles>,
    /// Checkpoints of which parts are missing, and what is missing.
    pub(crate) incomplete: Vec<(u64, String)>,
    /// Versions that have a checksum.
    pub(crate) checksums: BTreeSet<u64>,
    has_hint: bool,
}

/// `_last_checkpoint`, of which only the version matters.
#[derive(Debug, Deserialize)]
struct Hint {
    version: u64,
}

/// The path of the commit that made a version.
pub(crate) fn commit_path(version: u64) -> String {
    format!("{LOG}{version:020}.json")
}

pub(crate) fn checksum_path(version: u64) -> String {
    format!("{LOG}{version:020}.crc")
}

impl LogListing {
    /// Lists the log of a table.
    pub async fn read(store: &StoreRef) -> Result<Self> {
        let paths = store.list_paths(LOG).await?;
        let listing = Self::of_names(paths.iter().filter_map(|path| path.strip_prefix(LOG)));
        if listing.latest().is_none() {
            return Err(DeltaError::not_found(format!(
                "no Delta table at {}: expected commits in _delta_log, found none; check the path",
                store.uri()
            )));
        }
        Ok(listing)
    }

    pub(crate) fn of_names<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut listing = Self::default();
        let mut whole = Vec::new();
        let mut parts: BTreeMap<(u64, u32), BTreeMap<u32, String>> = BTreeMap::new();
        for name in names {
            listing.has_hint |= name == "_last_checkpoint";
            let Some((version, rest)) = name.split_once('.').and_then(|(v, rest)| Some((version_of(v)?, rest))) else {
                continue;
            };
            let path = || format!("{LOG}{name}");
            match rest {
                "json" => {
                    listing.commits.insert(version);
                }
                "crc" => {
                    listing.checksums.insert(version);
                }
                "checkpoint.parquet" => whole.push((version, path())),
                _ => {
                    let words: Vec<&str> = rest.split('.').collect();
                    match words.as_slice() {
                        ["checkpoint", part, count, "parquet"] => {
                            if let Some((part, count)) = number(part).zip(number(count)) {
                                parts.entry((version, count)).or_default().insert(part, path());
                            }
                        }
                        ["checkpoint", id, "parquet" | "json"] if is_uuid(id) => whole.push((version, path())),
                        _ => {}
                    }
                }
            }
        }
        for (version, path) in whole {
            listing.checkpoints.push(CheckpointFiles {
                version,
                files: vec![path],
            });
        }
        for ((version, count), found) in parts {
            let wanted = 1..=count;
            if count == 0
                || count > MAX_PARTS
                || found.len() as u64 != u64::from(count)
                || !found.keys().all(|part| wanted.contains(part))
            {
                let message = format!(
                    "the checkpoint of version {version} has {} of {count} parts",
                    found.len()
                );
                listing.incomplete.push((version, message));
                continue;
            }
            listing.checkpoints.push(CheckpointFiles {
                version,
                files: found.into_values().collect(),
            });
        }
        // Newest first; checkpoints of the same version are equivalent.
        listing
            .checkpoints
            .sort_by(|a, b| b.version.cmp(&a.version).then_with(|| a.files.cmp(&b.files)));
        listing
    }

    /// The newest version that the log has.
    pub fn latest(&self) -> Option<u64> {
        let checkpoint = self.checkpoints.first().map(|checkpoint| checkpoint.version);
        self.commits.last().copied().max(checkpoint)
    }

    /// Lists the log around a version: few other names, if the store can list by a prefix.
    ///
    /// If the version is the newest in this listing, it is the table's newest: a clean-up deletes the oldest entries first, so it has not
    /// passed an entry that still exists, and another table created in this one's place has other versions.
    pub(crate) async fn around(store: &StoreRef, version: u64) -> Result<Self> {
        let (name, next) = (format!("{version:020}"), format!("{:020}", version.saturating_add(1)));
        let same = name.bytes().zip(next.bytes()).take_while(|(a, b)| a == b).count();
        let block = name.get(..same.min(NAMES_OF_A_BLOCK)).unwrap_or_default();
        let paths = store.list_starting(LOG, block).await?;
        Ok(Self::of_names(paths.iter().filter_map(|path| path.strip_prefix(LOG))))
    }

    /// The oldest version that can be opened, judging by names alone.
    pub fn earliest(&self) -> Option<u64> {
        if self.commits.contains(&0) {
            return Some(0);
        }
        self.checkpoints.last().map(|checkpoint| checkpoint.version)
    }

    /// The first version in a range that has no commit.
    pub(crate) fn gap(&self, mut versions: std::ops::RangeInclusive<u64>) -> Option<u64> {
        versions.find(|version| !self.commits.contains(version))
    }

    /// An error if a checksum or the hint names a version after the newest commit, which then is not the table's newest.
    pub(crate) async fn check_end(&self, store: &StoreRef) -> Result<()> {
        let Some(latest) = self.latest() else { return Ok(()) };
        if let Some(version) = self.checksums.last().filter(|version| **version > latest) {
            return Err(DeltaError::corrupt(
                checksum_path(*version),
                format!("a checksum of version {version} is there, but the log ends at version {latest}: newer entries are lost; restore them"),
            ));
        }
        if !self.has_hint {
            return Ok(());
        }
        // An unreadable hint is ignored.
        let Ok(bytes) = store.get(HINT).await else {
            return Ok(());
        };
        match serde_json::from_slice::<Hint>(&bytes) {
            Ok(hint) if hint.version > latest => Err(DeltaError::corrupt(
                HINT,
                format!(
                    "it tells of a checkpoint of version {}, but the log ends at version {latest}: newer entries are lost; restore them, \
                     or remove {HINT} if it is wrong",
                    hint.version
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// Twenty digits.
fn version_of(text: &str) -> Option<u64> {
    let digits = text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Ten digits.
fn number(text: &str) -> Option<u32> {
    let digits = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn is_uuid(text: &str) -> bool {
    uuid::Uuid::try_parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_checkpoints_of_every_kind_are_found_newest_first() {
        let names = [
            "00000000000000000000.json",
            "00000000000000000001.checkpoint.parquet",
            "00000000000000000002.checkpoint.0000000001.0000000002.parquet",
            "00000000000000000002.checkpoint.0000000002.0000000002.parquet",
            "00000000000000000003.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
            "00000000000000000004.checkpoint.0000000001.0000000002.parquet",
            "00000000000000000004.checkpoint.0000000003.0000000002.parquet",
            "00000000000000000005.checkpoint.0000000001.0000000000.parquet",
            "00000000000000000004.00000000000000000006.compacted.json",
            "00000000000000000007.json.tmp",
            "_last_checkpoint",
            "0.json",
        ];
        let listing = LogListing::of_names(names.into_iter());
        assert_eq!(
            listing.checkpoints.iter().map(|c| c.version).collect::<Vec<_>>(),
            [3, 2, 1]
        );
        assert_eq!(listing.checkpoints[1].files.len(), 2);
        assert_eq!(listing.incomplete.len(), 2);
        assert_eq!(listing.latest(), Some(3));
        assert_eq!(listing.earliest(), Some(0));
        assert_eq!(listing.gap(0..=3), Some(1));
    }
}
