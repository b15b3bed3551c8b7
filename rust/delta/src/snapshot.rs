//! A snapshot: one version of a table with its metadata and files.
//!
//! A version is replayed from a complete checkpoint, or from version 0. If a checkpoint is corrupt, incomplete or missing, an older one or
//! the commits alone are used, but only if no commit in between is missing. `_last_checkpoint` is only a hint.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::timezone::Tz;
use esker_store::StoreRef;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Deserialize;

use crate::actions::{DomainMetadata, Metadata, Protocol, Transaction};
use crate::checkpoint;
use crate::chunk::ChunkView;
use crate::commit::{hash_of_entry, read_commit, CommitActions};
use crate::error::{DeltaError, Result};
use crate::listing::{checksum_path, commit_path, CheckpointFiles, LogListing};
use crate::partition::zone_of;
use crate::path::TableRoot;
use crate::protocol::check_readable;
use crate::replay::{join_small, Replay};
use crate::schema::DeltaSchema;

/// Commits that are read concurrently.
const PARALLEL: usize = 16;
/// How often the log is listed again while others change it.
const LOOKS: usize = 8;

/// One version of a table.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Its number.
    pub version: u64,
    /// The table's root.
    pub root: Arc<TableRoot>,
    /// The protocol.
    pub protocol: Arc<Protocol>,
    /// The metadata.
    pub metadata: Arc<Metadata>,
    /// Its columns.
    pub schema: Arc<DeltaSchema>,
    /// The applications' last transactions.
    pub transactions: Arc<BTreeMap<String, Transaction>>,
    /// The domain metadata.
    pub domains: Arc<BTreeMap<String, DomainMetadata>>,
    /// The files.
    pub views: Vec<ChunkView>,
    /// The in-commit timestamp, if in-commit timestamps are on.
    pub in_commit_timestamp: Option<i64>,
    /// The version of the checkpoint that it was replayed from.
    pub checkpoint_version: Option<u64>,
    /// The checkpoint's files, sidecars included.
    pub(crate) base_files: Arc<Vec<String>>,
    /// The hash of its version's entry, unless a checkpoint of the same version stood for that.
    pub(crate) entry: Option<u64>,
    /// The zone of timestamps without a zone in partition values; UTC if `None`.
    pub(crate) zone: Option<Tz>,
}

/// The version of a checkpoint, and its files.
type BaseCheckpoint = (u64, Arc<Vec<String>>);

/// The fields of a version's checksum that are compared. Spec: "Version Checksum File".
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Checksum {
    num_files: Option<i64>,
    table_size_bytes: Option<i64>,
}

impl Snapshot {
    /// Opens a version of the table in a store, or the newest one.
    ///
    /// Others may commit and clean up while the log is read. A missing file is an error only if a second listing of the log is the same as
    /// the first.
    pub async fn load(store: &StoreRef, version: Option<u64>) -> Result<Self> {
        let mut listing = LogListing::read(store).await?;
        let mut looks = 1;
        loop {
            let error = match Self::open(store, &listing, version).await {
                Err(error) if error.is_of_listing() => error,
                done => return done,
            };
            let again = LogListing::read(store).await?;
            looks += 1;
            if again == listing || looks > LOOKS {
                return Err(error);
            }
            listing = again;
        }
    }

    async fn open(store: &StoreRef, listing: &LogListing, version: Option<u64>) -> Result<Self> {
        let root = Arc::new(TableRoot::new(store.uri()));
        let latest = listing.latest().unwrap_or_default();
        if version.is_none() {
            listing.check_end(store).await?;
        }
        let version = version.unwrap_or(latest);
        if version > latest {
            return Err(DeltaError::not_found(format!(
                "no version {version} of {}: the newest is {latest}",
                store.uri()
            )));
        }
        let snapshot = Self::replay(store, listing, version, &root).await?;
        if listing.checksums.contains(&version) {
            snapshot.compare_checksum(store).await?;
        }
        Ok(snapshot)
    }

    async fn replay(store: &StoreRef, listing: &LogListing, version: u64, root: &Arc<TableRoot>) -> Result<Self> {
        let mut broken: Vec<String> = Vec::new();
        let mut gap = None;
        for checkpoint in listing
            .checkpoints
            .iter()
            .filter(|checkpoint| checkpoint.version <= version)
        {
            let after = checkpoint.version + 1;
            if let Some(missing) = listing.gap(after..=version) {
                gap.get_or_insert(missing);
                continue;
            }
            match Self::from_checkpoint(store, checkpoint, version, root).await {
                Err(error) if error.is_of_file() => broken.push(error.to_string()),
                done => return done,
            }
        }
        let Some(missing) = listing.gap(0..=version) else {
            let commits = read_commits(store, root, (0..=version).collect()).await?;
            return Self::finish(commits, None, version, root, None);
        };
        broken.extend(
            listing
                .incomplete
                .iter()
                .filter(|(of, _)| *of <= version)
                .map(|(_, message)| message.clone()),
        );
        let earliest = listing.earliest().unwrap_or_default();
        if broken.is_empty() && earliest > version {
            return Err(DeltaError::not_found(format!(
                "version {version} of {} was cleaned up: the oldest that can be opened is {earliest}",
                store.uri()
            )));
        }
        // Behind a checkpoint that is there no more is needed than what comes after it.
        let missing = gap.unwrap_or(missing);
        let mut message = format!(
            "expected the commit of version {missing}, found none: without it version {version} cannot be replayed; restore it"
        );
        for broken in broken {
            message.push_str(&format!(" ({broken})"));
        }
        Err(DeltaError::corrupt(commit_path(missing), message))
    }

    async fn from_checkpoint(
        store: &StoreRef,
        checkpoint: &CheckpointFiles,
        version: u64,
        root: &Arc<TableRoot>,
    ) -> Result<Self> {
        let mut content = checkpoint::read(store, checkpoint, root).await?;
        let files = std::mem::take(&mut content.files);
        let commits = read_commits(store, root, (checkpoint.version + 1..=version).collect()).await?;
        let mut replay = Replay::default();
        for commit in commits.into_iter().rev() {
            replay.take_commit(commit)?;
        }
        replay.take_checkpoint(content);
        Self::finish_replay(replay, version, root, Some((checkpoint.version, Arc::new(files))))
    }

    fn finish(
        commits: Vec<CommitActions>,
        base: Option<&Self>,
        version: u64,
        root: &Arc<TableRoot>,
        checkpoint: Option<BaseCheckpoint>,
    ) -> Result<Self> {
        let mut replay = Replay::default();
        for commit in commits.into_iter().rev() {
            replay.take_commit(commit)?;
        }
        if let Some(base) = base {
            replay.take_state(
                Some(base.metadata.as_ref().clone()),
                Some(base.protocol.as_ref().clone()),
                base.transactions.values().cloned().collect(),
                base.domains.values().cloned().collect(),
            );
            replay.take_views(base.views.clone());
        }
        Self::finish_replay(replay, version, root, checkpoint)
    }

    fn finish_replay(
        mut replay: Replay,
        version: u64,
        root: &Arc<TableRoot>,
        checkpoint: Option<BaseCheckpoint>,
    ) -> Result<Self> {
        replay.finish();
        let missing = |what: &str| {
            DeltaError::corrupt(
                commit_path(0),
                format!("expected a {what} action in the versions up to {version}, found none"),
            )
        };
        let protocol = replay.protocol.take().ok_or_else(|| missing("protocol"))?;
        let metadata = replay.metadata.take().ok_or_else(|| missing("metaData"))?;
        check_readable(&protocol, &metadata)?;
        let schema = DeltaSchema::of_metadata(&metadata, version)?;
        Ok(Self {
            version,
            root: root.clone(),
            protocol: Arc::new(protocol),
            schema: Arc::new(schema),
            in_commit_timestamp: replay
                .in_commit_timestamp
                .filter(|_| metadata.is_set("delta.enableInCommitTimestamps")),
            metadata: Arc::new(metadata),
            transactions: Arc::new(replay.transactions),
            domains: Arc::new(replay.domains),
            views: join_small(replay.views)?,
            checkpoint_version: checkpoint.as_ref().map(|(version, _)| *version),
            base_files: checkpoint.map(|(_, files)| files).unwrap_or_default(),
            entry: replay.entry,
            zone: None,
        })
    }

    /// The same with a zone for timestamps without one in partition values.
    pub fn with_zone(mut self, name: &str) -> Result<Self> {
        self.zone = Some(zone_of(name)?);
        Ok(self)
    }

    /// Updates this snapshot to the newest version, or the newest up to `last`: only commits after it are read.
    ///
    /// If the next commit does not exist, the names around it are listed: if a clean-up removed it, or another table was created in this
    /// one's place, the table is opened anew. So it is if the entry of this version is another one than it was.
    pub async fn refresh(&self, store: &StoreRef, last: Option<u64>) -> Result<Self> {
        let mut commits = Vec::new();
        let mut came_late = None;
        loop {
            let next = self.version + 1 + commits.len() as u64;
            if last.is_some_and(|last| next > last) {
                break;
            }
            match read_commit(store, &self.root, next).await {
                Ok(commit) => commits.push(commit),
                Err(DeltaError::Store(error)) if error.is_not_found() => {
                    let around = LogListing::around(store, next - 1).await?;
                    if around.latest() == Some(next - 1) {
                        break;
                    }
                    if !around.commits.contains(&next) || came_late == Some(next) {
                        return self.anew(store, last).await;
                    }
                    came_late = Some(next);
                }
                Err(error) => return Err(error),
            }
        }
        if commits.is_empty() {
            return Ok(self.clone());
        }
        if self.is_replaced(store).await? {
            return self.anew(store, last).await;
        }
        let version = self.version + commits.len() as u64;
        let base = self.checkpoint_version.map(|base| (base, self.base_files.clone()));
        let mut next = Self::finish(commits, Some(self), version, &self.root, base)?;
        next.zone = self.zone;
        Ok(next)
    }

    /// Whether the entry of this version is another one than this snapshot was replayed from: another table was created in this one's place.
    ///
    /// False if that cannot be known: if it was cleaned up, or a checkpoint of this version stood for it.
    pub async fn is_replaced(&self, store: &StoreRef) -> Result<bool> {
        let Some(entry) = self.entry else {
            return Ok(false);
        };
        match store.get(&commit_path(self.version)).await {
            Ok(bytes) => Ok(hash_of_entry(&bytes) != entry),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the newest version, or the newest up to `last`, without using this snapshot.
    async fn anew(&self, store: &StoreRef, last: Option<u64>) -> Result<Self> {
        let version = match last {
            Some(last) => LogListing::read(store)
                .await?
                .latest()
                .filter(|latest| *latest > last)
                .and(Some(last)),
            None => None,
        };
        let mut found = Self::load(store, version).await?;
        found.zone = self.zone;
        Ok(found)
    }

    /// How many files.
    pub fn num_files(&self) -> usize {
        self.views.iter().map(ChunkView::live).sum()
    }

    /// An error if this version's checksum does not match the replayed files.
    async fn compare_checksum(&self, store: &StoreRef) -> Result<()> {
        let path = checksum_path(self.version);
        let Ok(bytes) = store.get(&path).await else {
            return Ok(());
        };
        // An unreadable checksum is ignored.
        let Ok(checksum) = serde_json::from_slice::<Checksum>(&bytes) else {
            return Ok(());
        };
        let files = i64::try_from(self.num_files()).ok();
        let sizes = self
            .views
            .iter()
            .flat_map(|view| view.rows().map(|row| view.chunk.size(row)));
        let bytes = sizes.fold(0i64, i64::saturating_add);
        for (what, expected, found) in [
            ("files", checksum.num_files, files),
            ("bytes", checksum.table_size_bytes, Some(bytes)),
        ] {
            if expected.is_some() && expected != found {
                return Err(DeltaError::corrupt(
                    commit_path(self.version),
                    format!(
                        "version {}: its checksum tells of {} {what}, found {}: an entry of the log was cut off or lost; restore it, \
                         or remove {path} if that is wrong",
                        self.version,
                        expected.unwrap_or_default(),
                        found.unwrap_or_default()
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// Reads commits, several concurrently, and returns them in the requested order.
async fn read_commits(store: &StoreRef, root: &Arc<TableRoot>, versions: Vec<u64>) -> Result<Vec<CommitActions>> {
    let group = (versions.len() / 64).clamp(1, 64);
    let groups: Vec<Vec<u64>> = versions.chunks(group).map(<[u64]>::to_vec).collect();
    let tasks = groups.into_iter().map(|versions| {
        let (store, root) = (store.clone(), root.clone());
        async move {
            let task = tokio::spawn(async move {
                let mut commits = Vec::with_capacity(versions.len());
                for version in versions {
                    commits.push(read_commit(&store, &root, version).await?);
                }
                Ok(commits)
            });
            match task.await {
                Ok(commits) => commits,
                Err(error) => Err(DeltaError::corrupt(commit_path(0), error.to_string())),
            }
        }
    });
    let groups: Vec<Vec<CommitActions>> = stream::iter(tasks).buffered(PARALLEL).try_collect().await?;
    Ok(groups.into_iter().flatten().collect())
}
