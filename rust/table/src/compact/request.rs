//! How fragments are rewritten.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use esker_file::{DictionaryWriters, ExternalBlobs, FileVersion, Goal, WriteOptions};

use crate::error::{Result, TableError};
use crate::manifest::Manifest;
use crate::write::{page_bytes, WriteRequest};

/// A part of the memory that one unit of reading may take, and the bounds of that.
const UNIT_SHARE: u64 = 32;
const LEAST_UNIT: u64 = 1024 * 1024;
const MOST_UNIT: u64 = 2 * 1024 * 1024;

/// The least that is read at a time, whatever is asked for.
const LEAST_READ: u64 = 64 * 1024;

/// The least number of units that are read at the same time from a store behind a network.
const FAR_UNITS: usize = 16;

/// A part of the memory for the metadata of old files, which need not be read again then.
const METADATA_SHARE: u64 = 8;

/// A part of the memory that may be kept of what was freed, rather than that new memory is cleared for each buffer that is larger.
const KEPT_SHARE: u64 = 32;

/// A part of the memory for values that wait to fill a page; the rest is for what is read ahead and for pages that are encoded.
const WAITING_SHARE: u64 = 4;

/// As many full pages fill up side by side at most: columns are written one after the other, but those of little that are read together.
const PAGES_TOGETHER: u64 = 1;

/// Whether pages are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyMode {
    /// Where they can be.
    #[default]
    Allow,
    /// All rows are encoded anew.
    Never,
}

/// How much of a rewrite is done at a time; what is not given goes by the memory and the processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// Pages that are encoded at a time, and units that are read ahead.
    pub threads: Option<usize>,
    /// Bytes of rows that are read ahead.
    pub ahead_bytes: Option<u64>,
    /// Bytes of whole pages that are read ahead, to be copied.
    pub copied_bytes: Option<u64>,
}

/// How fragments are rewritten.
#[derive(Debug, Clone)]
pub struct RewriteRequest {
    /// The fragments, in the order of their rows.
    pub fragment_ids: Vec<u64>,
    /// The version of new files.
    pub version: FileVersion,
    /// How small new files are to be.
    pub goal: Goal,
    /// Rows after which a new file is started.
    pub max_rows_per_file: u64,
    /// Bytes after which a new file is started, by an estimate from the old files.
    pub max_bytes_per_file: u64,
    /// Rows of a group of files of version 0.1.
    pub max_rows_per_group: usize,
    /// Bytes that may be held: rows that are read ahead and rows that wait to be written.
    pub memory_limit: u64,
    /// The size of a full page; by default as the memory allows.
    pub page_bytes: Option<u64>,
    /// The most rows that are read at once.
    pub batch_rows: Option<u64>,
    /// How much is done at a time, where that is not left to us.
    pub pace: Pace,
    /// The base paths that new files go to in turn; `None` is the table's own root, as is an empty list.
    pub target_bases: Vec<Option<u32>>,
    /// Whether pages are copied.
    pub copy: CopyMode,
    /// Stops the rewrite early once it is true, with an error.
    pub stop: Arc<AtomicBool>,
}

impl RewriteRequest {
    /// An error if the rewrite is to stop.
    pub(super) fn check_stop(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(TableError::invalid("the rewrite was stopped before its end"));
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.max_rows_per_file == 0 || self.max_bytes_per_file == 0 || self.memory_limit == 0 {
            return Err(TableError::invalid(
                "expected max_rows_per_file, max_bytes_per_file and memory_limit above 0",
            ));
        }
        let mut seen = HashSet::new();
        match self.fragment_ids.iter().find(|id| !seen.insert(**id)) {
            Some(twice) => Err(TableError::invalid(format!(
                "expected each fragment once, found fragment {twice} twice"
            ))),
            None => Ok(()),
        }
    }

    /// The most bytes of values that wait to fill a page.
    pub(super) fn waiting_bytes(&self) -> u64 {
        (self.memory_limit / WAITING_SHARE).max(1)
    }

    /// The bytes of values of columns that are written side by side. Behind a network as many as the memory allows: what lies together in a
    /// file is one request there.
    pub(super) fn together_bytes(&self, is_far: bool) -> u64 {
        let most = self.waiting_bytes();
        if is_far {
            return most;
        }
        most.min(self.page_bytes().saturating_mul(PAGES_TOGETHER))
    }

    /// The most bytes of metadata of old files that are kept.
    pub(super) fn metadata_bytes(&self) -> u64 {
        self.memory_limit / METADATA_SHARE
    }

    /// The bytes that may be kept of what was freed.
    pub(super) fn kept_bytes(&self) -> usize {
        usize::try_from(self.memory_limit / KEPT_SHARE).unwrap_or(0)
    }

    /// The size of a full page.
    pub(super) fn page_bytes(&self) -> u64 {
        self.page_bytes
            .unwrap_or_else(|| page_bytes(self.waiting_bytes()))
            .max(1)
    }

    /// The size of a unit of reading.
    pub(super) fn unit_bytes(&self) -> u64 {
        let unit = (self.memory_limit / UNIT_SHARE).clamp(LEAST_UNIT, MOST_UNIT);
        self.pace
            .ahead_bytes
            .map_or(unit, |most| unit.min(most).max(LEAST_READ))
    }

    /// Units that are read ahead.
    pub(super) fn units_ahead(&self, is_far: bool) -> usize {
        let threads = self.pace.threads.unwrap_or(WriteOptions::default().threads);
        let least = if is_far && self.pace.threads.is_none() {
            FAR_UNITS
        } else {
            2
        };
        let bytes = self.memory_limit / 4;
        let bytes = self.pace.ahead_bytes.map_or(bytes, |most| bytes.min(most));
        let within = usize::try_from(bytes / self.unit_bytes()).unwrap_or(usize::MAX);
        threads.saturating_add(1).max(least).min(within).max(1)
    }

    /// Pages that are encoded at a time, beside what reads and decodes.
    fn encoded_at_once(&self) -> usize {
        let processors = WriteOptions::default().threads;
        self.pace.threads.unwrap_or(processors.saturating_sub(1)).max(1)
    }

    /// The base path of the file number `turn`.
    pub(super) fn base(&self, turn: usize) -> Option<u32> {
        let place = turn.checked_rem(self.target_bases.len()).unwrap_or(0);
        self.target_bases.get(place).copied().flatten()
    }

    /// How a 2.x file is written.
    pub(super) fn options(&self) -> WriteOptions {
        WriteOptions {
            version: self.version,
            goal: self.goal,
            page_bytes: self.page_bytes(),
            memory_limit: self.waiting_bytes(),
            external_blobs: ExternalBlobs::Reference,
            threads: self.encoded_at_once(),
            staging: true,
            ..WriteOptions::default()
        }
    }

    /// How files are written that take whole batches.
    pub(super) fn batches(&self, manifest: &Manifest) -> Result<WriteRequest> {
        let dictionaries = manifest.dictionaries()?;
        Ok(WriteRequest {
            schema: manifest.schema()?.as_ref().clone(),
            version: self.version,
            goal: self.goal,
            max_rows_per_file: self.max_rows_per_file,
            max_bytes_per_file: self.max_bytes_per_file,
            memory_limit: self.waiting_bytes(),
            external_blobs: ExternalBlobs::Reference,
            max_rows_per_group: self.max_rows_per_group,
            allow_null_loss: false,
            dictionaries: DictionaryWriters::of_table(&dictionaries)?,
            target_bases: self.target_bases.clone(),
            stop: Arc::default(),
        })
    }
}
