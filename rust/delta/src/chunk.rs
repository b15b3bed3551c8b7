//! A columnar list of a table's files: packed paths, sizes, dictionary-encoded partition values. Statistics stay in the log.
//!
//! A chunk holds the files of one checkpoint file, or of some consecutive commits. It is immutable: the [`ChunkView`] of a snapshot says
//! which of its files are still alive, so that snapshots share chunks.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};

use arrow_buffer::BooleanBuffer;
use esker_store::kept;
use hashbrown::{DefaultHashBuilder, HashMap};

use crate::actions::{DeletionVectorDescriptor, PartitionValues};
use crate::error::{DeltaError, Result};
use crate::path::{encode_path, TableRoot};
use crate::path_column::{PathBuilder, PathColumn};
use crate::statistics::StatisticsCache;

/// Where a chunk's adds can be read again, for their statistics.
#[derive(Debug, Clone)]
pub enum Source {
    /// Lines of commits, or of a checkpoint in JSON.
    Commits {
        /// Their paths.
        files: Vec<String>,
        /// The line of each file of the chunk.
        lines: Vec<LineSpan>,
    },
    /// The adds of a row group of a Parquet file, in its order.
    Parquet {
        /// The path of the checkpoint, part or sidecar.
        path: String,
        /// The row group.
        group: usize,
    },
}

/// A line within a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineSpan {
    /// The index of the file.
    pub file: u32,
    /// The first byte.
    pub start: u32,
    /// How many bytes.
    pub len: u32,
}

/// The values of one partition column: a code for each file, and what the codes mean. Code 0 is null.
#[derive(Debug, Clone)]
pub(crate) struct PartitionColumn {
    pub(crate) name: String,
    pub(crate) codes: Vec<u32>,
    pub(crate) values: Vec<Option<Box<str>>>,
}

/// Files of a table.
#[derive(Debug)]
pub struct FileChunk {
    pub(crate) paths: PathColumn,
    pub(crate) sizes: Vec<i64>,
    pub(crate) times: Vec<i64>,
    pub(crate) partitions: Vec<PartitionColumn>,
    pub(crate) vectors: BTreeMap<u32, DeletionVectorDescriptor>,
    /// The paths in the log that differ from the encoded canonical form, by row.
    pub(crate) spelled: BTreeMap<u32, Box<str>>,
    pub(crate) source: Source,
    pub(crate) statistics: StatisticsCache,
    hashes: OnceLock<Vec<u32>>,
}

impl FileChunk {
    /// How many files.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A file's canonical path.
    pub fn path(&self, row: usize) -> String {
        self.paths.get(row)
    }

    /// A file's path as the log has it.
    pub fn spelled_path(&self, row: usize) -> String {
        let spelled = u32::try_from(row).ok().and_then(|row| self.spelled.get(&row));
        spelled.map_or_else(|| encode_path(&self.path(row)).into_owned(), |path| path.to_string())
    }

    /// A file's size in bytes.
    pub fn size(&self, row: usize) -> i64 {
        self.sizes.get(row).copied().unwrap_or_default()
    }

    /// When a file was written, in milliseconds since the epoch.
    pub fn modification_time(&self, row: usize) -> i64 {
        self.times.get(row).copied().unwrap_or_default()
    }

    /// A file's deletion vector.
    pub fn deletion_vector(&self, row: usize) -> Option<&DeletionVectorDescriptor> {
        if self.vectors.is_empty() {
            return None;
        }
        self.vectors.get(&u32::try_from(row).ok()?)
    }

    /// The value of a partition column, by its physical name.
    pub fn partition_value(&self, name: &str, row: usize) -> Option<&str> {
        let column = self.partitions.iter().find(|column| column.name == name)?;
        let code = *column.codes.get(row)?;
        column.values.get(code as usize)?.as_deref()
    }

    /// An error about a file, which names the file and the log file of its add.
    pub(crate) fn blame(&self, row: usize, message: &str) -> DeltaError {
        let log = match &self.source {
            Source::Parquet { path, .. } => Some(path),
            Source::Commits { files, lines } => lines.get(row).and_then(|line| files.get(line.file as usize)),
        };
        DeltaError::corrupt(
            log.map(String::as_str).unwrap_or_default(),
            format!("{message}, for file {}", self.path(row)),
        )
    }

    /// A file's key.
    pub(crate) fn key(&self, row: usize) -> Vec<u8> {
        file_key(&self.path(row), self.deletion_vector(row))
    }

    /// A hash of each path, to find a few files among many.
    pub(crate) fn hashes(&self) -> &[u32] {
        kept::<Vec<u32>>(&self.hashes, || {
            (0..self.len()).map(|row| hash_path(&self.path(row))).collect()
        })
    }
}

/// The key of a logical file: its canonical path and the unique id of its deletion vector. Spec: "Action Reconciliation".
pub(crate) fn file_key(path: &str, vector: Option<&DeletionVectorDescriptor>) -> Vec<u8> {
    let mut key = path.as_bytes().to_vec();
    if let Some(vector) = vector {
        key.push(0);
        key.extend_from_slice(vector.unique_id().as_bytes());
    }
    key
}

/// The path of a key.
pub(crate) fn path_of_key(key: &[u8]) -> &[u8] {
    key.split(|byte| *byte == 0).next().unwrap_or_default()
}

static HASHER: OnceLock<DefaultHashBuilder> = OnceLock::new();

pub(crate) fn hash_path(path: &str) -> u32 {
    hash_bytes(path.as_bytes())
}

pub(crate) fn hash_bytes(bytes: &[u8]) -> u32 {
    let hash = HASHER.get_or_init(DefaultHashBuilder::default).hash_one(bytes);
    u32::try_from(hash >> 32).unwrap_or_default()
}

/// A chunk as one snapshot sees it.
#[derive(Debug, Clone)]
pub struct ChunkView {
    /// The files.
    pub chunk: Arc<FileChunk>,
    /// Which of them are alive; `None` for all.
    pub alive: Option<BooleanBuffer>,
}

impl ChunkView {
    /// How many files are alive.
    pub fn live(&self) -> usize {
        self.alive
            .as_ref()
            .map_or(self.chunk.len(), BooleanBuffer::count_set_bits)
    }

    /// Whether a file is alive.
    pub fn is_alive(&self, row: usize) -> bool {
        self.alive
            .as_ref()
            .is_none_or(|alive| row < alive.len() && alive.value(row))
    }

    /// The files that are alive.
    pub fn rows(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.chunk.len()).filter(|row| self.is_alive(*row))
    }
}

/// A chunk that is being filled.
#[derive(Debug, Default)]
pub(crate) struct ChunkBuilder {
    paths: PathBuilder,
    sizes: Vec<i64>,
    times: Vec<i64>,
    partitions: Vec<PartitionBuilder>,
    vectors: BTreeMap<u32, DeletionVectorDescriptor>,
    spelled: BTreeMap<u32, Box<str>>,
}

#[derive(Debug)]
struct PartitionBuilder {
    column: PartitionColumn,
    codes: HashMap<Box<str>, u32>,
    last: u32,
}

impl ChunkBuilder {
    pub(crate) fn with_capacity(rows: usize) -> Self {
        Self {
            paths: PathBuilder::with_capacity(rows),
            sizes: Vec::with_capacity(rows),
            times: Vec::with_capacity(rows),
            ..Self::default()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.paths.len()
    }

    /// Adds a file by its path in the log. Its partition values are added next.
    pub(crate) fn push(
        &mut self,
        root: &TableRoot,
        encoded: &str,
        size: i64,
        time: i64,
        vector: Option<DeletionVectorDescriptor>,
    ) -> Result<()> {
        let row = u32::try_from(self.len())
            .map_err(|_| DeltaError::unsupported("one file of the log names more than 2^32 files"))?;
        let canonical = root.canonical(encoded);
        if encode_path(&canonical) != encoded {
            self.spelled.insert(row, encoded.into());
        }
        self.paths.push(&canonical)?;
        self.sizes.push(size);
        self.times.push(time);
        if let Some(vector) = vector {
            self.vectors.insert(row, vector);
        }
        Ok(())
    }

    /// Sets a partition value of the file that was added last. An empty text is null for every type.
    pub(crate) fn partition(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        let Some(row) = self.len().checked_sub(1) else {
            return Ok(());
        };
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            return Ok(());
        };
        let found = self.partitions.iter().position(|builder| builder.column.name == name);
        let at = found.unwrap_or_else(|| {
            self.partitions.push(PartitionBuilder {
                column: PartitionColumn {
                    name: name.to_owned(),
                    codes: Vec::new(),
                    values: vec![None],
                },
                codes: HashMap::new(),
                last: 0,
            });
            self.partitions.len() - 1
        });
        match self.partitions.get_mut(at) {
            Some(builder) => builder.push(row, value),
            None => Ok(()),
        }
    }

    /// Sets all partition values of the file that was added last.
    pub(crate) fn partition_values(&mut self, values: &PartitionValues<'_>) -> Result<()> {
        for (name, value) in &values.0 {
            self.partition(&name.0, value.as_ref().map(|value| value.0.as_ref()))?;
        }
        Ok(())
    }

    /// Copies a file of another chunk.
    pub(crate) fn copy(&mut self, from: &FileChunk, row: usize) -> Result<()> {
        let at = u32::try_from(self.len())
            .map_err(|_| DeltaError::unsupported("one file of the log names more than 2^32 files"))?;
        self.paths.push(&from.path(row))?;
        self.sizes.push(from.size(row));
        self.times.push(from.modification_time(row));
        if let Some(vector) = from.deletion_vector(row) {
            self.vectors.insert(at, vector.clone());
        }
        let spelled = u32::try_from(row).ok().and_then(|row| from.spelled.get(&row));
        if let Some(spelled) = spelled {
            self.spelled.insert(at, spelled.clone());
        }
        for column in &from.partitions {
            let code = column.codes.get(row).copied().unwrap_or_default();
            let value = column.values.get(code as usize).and_then(|value| value.as_deref());
            self.partition(&column.name, value)?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self, source: Source) -> FileChunk {
        let rows = self.len();
        self.sizes.shrink_to_fit();
        self.times.shrink_to_fit();
        let partitions = self.partitions.into_iter().map(|mut builder| {
            builder.column.codes.resize(rows, 0);
            builder.column
        });
        FileChunk {
            partitions: partitions.collect(),
            paths: self.paths.finish(),
            sizes: self.sizes,
            times: self.times,
            vectors: self.vectors,
            spelled: self.spelled,
            source,
            statistics: StatisticsCache::default(),
            hashes: OnceLock::new(),
        }
    }
}

impl PartitionBuilder {
    fn push(&mut self, row: usize, value: &str) -> Result<()> {
        let column = &mut self.column;
        // Adjacent files often have the same value.
        let last = column.values.get(self.last as usize).and_then(|last| last.as_deref());
        if last != Some(value) {
            self.last = match self.codes.get(value) {
                Some(code) => *code,
                None => {
                    let code = u32::try_from(column.values.len()).map_err(|_| {
                        DeltaError::unsupported("more than 2^32 partition values in one file of the log")
                    })?;
                    column.values.push(Some(value.into()));
                    self.codes.insert(value.into(), code);
                    code
                }
            };
        }
        // Files before it that have no value of this column have null.
        column.codes.resize(row, 0);
        column.codes.push(self.last);
        Ok(())
    }
}
