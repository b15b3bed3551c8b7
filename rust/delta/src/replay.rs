//! Log replay: reconciles all actions, newest first.
//!
//! Spec: "Action Reconciliation". The newest action wins: of each file (by canonical path and deletion vector), of metadata, of protocol,
//! of each application and of each domain. A checkpoint comes last and is already reconciled, so the keys of its files are looked up but
//! not stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_buffer::BooleanBuffer;
use hashbrown::HashSet;

use crate::actions::{DomainMetadata, Metadata, Protocol, Transaction};
use crate::checkpoint_file::CheckpointContent;
use crate::chunk::{hash_bytes, path_of_key, ChunkBuilder, ChunkView, FileChunk, LineSpan, Source};
use crate::commit::CommitActions;
use crate::error::{DeltaError, Result};

/// Commits with fewer files than this share a chunk.
const SMALL: usize = 4096;

/// The state reconciled so far.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    pub(crate) metadata: Option<Metadata>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) transactions: BTreeMap<String, Transaction>,
    pub(crate) domains: BTreeMap<String, DomainMetadata>,
    pub(crate) views: Vec<ChunkView>,
    /// The in-commit timestamp of the newest commit.
    pub(crate) in_commit_timestamp: Option<i64>,
    /// The hash of the newest commit's entry.
    pub(crate) entry: Option<u64>,
    seen: Seen,
    small: Gathered,
    commits: u64,
}

/// The keys of files with a newer action.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    keys: HashSet<Vec<u8>>,
    /// A one-bit Bloom filter of the paths' hashes, which rules out most paths of a large chunk.
    filter: Vec<u64>,
}

impl Seen {
    /// Inserts a file's key; returns whether it is new.
    pub(crate) fn insert(&mut self, key: Vec<u8>) -> bool {
        let (word, bit) = slot(hash_bytes(path_of_key(&key)));
        self.filter.resize(1024, 0);
        if let Some(word) = self.filter.get_mut(word) {
            *word |= bit;
        }
        self.keys.insert(key)
    }

    /// Whether no file was inserted.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether a file's key was inserted.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.keys.contains(key)
    }

    /// Whether a file with this path hash may have been inserted.
    pub(crate) fn may_hold(&self, hash: u32) -> bool {
        let (word, bit) = slot(hash);
        self.filter.get(word).is_some_and(|word| word & bit != 0)
    }
}

/// The bit of a hash among 65,536.
fn slot(hash: u32) -> (usize, u64) {
    ((hash & 0xFFFF) as usize >> 6, 1 << (hash & 63))
}

impl Replay {
    /// Adds a commit, which must be older than all added before.
    pub(crate) fn take_commit(&mut self, commit: CommitActions) -> Result<()> {
        if self.commits == 0 {
            self.in_commit_timestamp = commit.in_commit_timestamp();
            self.entry = Some(commit.entry);
        }
        self.commits += 1;
        let adds = commit.adds;
        let alive: Vec<bool> = (0..adds.len()).map(|row| self.seen.insert(adds.key(row))).collect();
        for key in commit.removes {
            self.seen.insert(key);
        }
        self.take_state(commit.metadata, commit.protocol, commit.transactions, commit.domains);
        if adds.len() < SMALL {
            return self.small.take(&adds, &alive, &mut self.views);
        }
        self.small.flush(&mut self.views);
        let all = alive.iter().all(|alive| *alive);
        self.views.push(ChunkView {
            chunk: Arc::new(adds),
            alive: (!all).then(|| BooleanBuffer::from(alive)),
        });
        Ok(())
    }

    /// Adds the checkpoint before the commits added so far.
    pub(crate) fn take_checkpoint(&mut self, content: CheckpointContent) {
        self.take_state(
            content.metadata,
            content.protocol,
            content.transactions,
            content.domains,
        );
        let views = content
            .chunks
            .into_iter()
            .filter(|chunk| !chunk.is_empty())
            .map(|chunk| ChunkView {
                chunk: Arc::new(chunk),
                alive: None,
            });
        self.take_views(views.collect());
    }

    /// Adds the files of an older snapshot, which shares its chunks.
    pub(crate) fn take_views(&mut self, views: Vec<ChunkView>) {
        self.small.flush(&mut self.views);
        let left = views
            .into_iter()
            .map(|view| without(view, &self.seen))
            .filter(|view| view.live() > 0);
        self.views.extend(left);
    }

    /// Finishes the replay.
    pub(crate) fn finish(&mut self) {
        self.small.flush(&mut self.views);
        self.views.retain(|view| view.live() > 0);
        self.domains.retain(|_, domain| !domain.removed);
        self.seen = Seen::default();
    }

    pub(crate) fn take_state(
        &mut self,
        metadata: Option<Metadata>,
        protocol: Option<Protocol>,
        transactions: Vec<Transaction>,
        domains: Vec<DomainMetadata>,
    ) {
        self.metadata = self.metadata.take().or(metadata);
        self.protocol = self.protocol.take().or(protocol);
        for transaction in transactions {
            self.transactions
                .entry(transaction.app_id.clone())
                .or_insert(transaction);
        }
        for domain in domains {
            self.domains.entry(domain.domain.clone()).or_insert(domain);
        }
    }
}

/// A view without the files in `seen`.
fn without(view: ChunkView, seen: &Seen) -> ChunkView {
    if seen.keys.is_empty() {
        return view;
    }
    let chunk = view.chunk.clone();
    let gone: Vec<usize> = chunk
        .hashes()
        .iter()
        .enumerate()
        .filter(|(row, hash)| seen.may_hold(**hash) && view.is_alive(*row) && seen.keys.contains(&chunk.key(*row)))
        .map(|(row, _)| row)
        .collect();
    if gone.is_empty() {
        return view;
    }
    let mut alive: Vec<bool> = match &view.alive {
        Some(alive) => alive.iter().collect(),
        None => vec![true; chunk.len()],
    };
    for row in gone {
        if let Some(alive) = alive.get_mut(row) {
            *alive = false;
        }
    }
    ChunkView {
        chunk,
        alive: Some(BooleanBuffer::from(alive)),
    }
}

/// Gathers the live files of small commits into one chunk.
#[derive(Debug, Default)]
struct Gathered {
    builder: ChunkBuilder,
    files: Vec<String>,
    lines: Vec<LineSpan>,
}

impl Gathered {
    fn take(&mut self, adds: &FileChunk, alive: &[bool], views: &mut Vec<ChunkView>) -> Result<()> {
        let Source::Commits { files, lines } = &adds.source else {
            return Err(DeltaError::invalid("expected the adds of a commit"));
        };
        let live = alive
            .iter()
            .enumerate()
            .filter(|(_, alive)| **alive)
            .map(|(row, _)| row);
        let before = self.builder.len();
        let first = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        for row in live {
            self.builder.copy(adds, row)?;
            if let Some(line) = lines.get(row) {
                self.lines.push(LineSpan {
                    file: first.saturating_add(line.file),
                    ..*line
                });
            }
        }
        if self.builder.len() > before {
            self.files.extend(files.iter().cloned());
        }
        if self.builder.len() >= SMALL {
            self.flush(views);
        }
        Ok(())
    }

    fn flush(&mut self, views: &mut Vec<ChunkView>) {
        let gathered = std::mem::take(self);
        if gathered.builder.len() > 0 {
            let source = Source::Commits {
                files: gathered.files,
                lines: gathered.lines,
            };
            views.push(ChunkView {
                chunk: Arc::new(gathered.builder.finish(source)),
                alive: None,
            });
        }
    }
}

/// Joins small chunks, one of which each refresh adds, into one.
pub(crate) fn join_small(views: Vec<ChunkView>) -> Result<Vec<ChunkView>> {
    let is_small = |view: &ChunkView| view.chunk.len() < SMALL && matches!(view.chunk.source, Source::Commits { .. });
    if views.iter().filter(|view| is_small(view)).count() <= 64 {
        return Ok(views);
    }
    let (mut joined, mut gathered) = (Vec::new(), Gathered::default());
    for view in views {
        if is_small(&view) {
            let alive: Vec<bool> = (0..view.chunk.len()).map(|row| view.is_alive(row)).collect();
            gathered.take(&view.chunk, &alive, &mut joined)?;
        } else {
            gathered.flush(&mut joined);
            joined.push(view);
        }
    }
    gathered.flush(&mut joined);
    Ok(joined)
}
