//! A manifest: one version of a table.
//!
//! The fields that esker reads are decoded once, the fragments stay encoded until they are used, and the encoded fields are kept, so that
//! the next version carries along what this release does not understand.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use esker_file::schema::Schema;
use esker_file::version::FileVersion;
use esker_file::{Dictionaries, Goal};
use esker_proto::lance::{file, table as pb};
use esker_store::FoundOnce;
use prost::Message;

use crate::below::check_below;
use crate::error::{Result, TableError};
use crate::flags;
use crate::fragment::{Fragment, Summary};
use crate::fragment_list::{FragmentList, FRAGMENTS};
use crate::index::{decode_section, Index};
use crate::layout::{push_footer, push_length, push_section, section, split_manifest};
use crate::raw::RawMessage;
use crate::row_ids::RowIdIndex;
use crate::transaction::Transaction;

/// Numbers of the manifest's fields that esker changes.
pub(crate) mod field {
    pub const SCHEMA: u32 = 1;
    pub const VERSION: u32 = 3;
    pub const VERSION_AUX_DATA: u32 = 4;
    pub const SCHEMA_METADATA: u32 = 5;
    pub const INDEX_SECTION: u32 = 6;
    pub const TIMESTAMP: u32 = 7;
    pub const TAG: u32 = 8;
    pub const READER_FLAGS: u32 = 9;
    pub const WRITER_FLAGS: u32 = 10;
    pub const MAX_FRAGMENT_ID: u32 = 11;
    pub const TRANSACTION_FILE: u32 = 12;
    pub const WRITER_VERSION: u32 = 13;
    pub const NEXT_ROW_ID: u32 = 14;
    pub const DATA_FORMAT: u32 = 15;
    pub const CONFIG: u32 = 16;
    pub const BASE_PATHS: u32 = 18;
    pub const TABLE_METADATA: u32 = 19;
    pub const TRANSACTION_SECTION_OLD: u32 = 21;
    /// A tree of fragments in other objects: a newer feature, which esker does not read.
    pub const FRAGMENT_TREE: u32 = 22;
    pub const TRANSACTION_SECTION: u32 = 23;
}

/// The config key of the highest field id that was given out and is no longer in use; see `apply::field_ids`.
pub const MAX_FIELD_ID: &str = "esker.max_field_id";

/// The field id under [`MAX_FIELD_ID`] in a config; `None` if there is none, or if it is not an id.
pub fn noted_field_id(config: &BTreeMap<String, String>) -> Option<i32> {
    config.get(MAX_FIELD_ID)?.parse().ok().filter(|id| *id >= 0)
}

/// The config key of how small the files of a table are to be.
pub const COMPRESSION: &str = "esker.compression";

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// One version of a table: its schema, its fragments, and the other metadata.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// All fields but the fragments, as they came.
    pub(crate) raw: RawMessage,
    pub(crate) fragments: FragmentList,
    /// The encoded IndexSection, carried from version to version.
    pub(crate) index_section: Option<Bytes>,
    /// The encoded transaction that made this version.
    pub(crate) inline_transaction: Option<Bytes>,
    /// The values of dictionary columns of 0.1 files: all bytes before the other sections. They stay at the very start of the file, since
    /// the schema names absolute positions in it. Carried from version to version.
    pub(crate) dictionary_section: Option<Bytes>,
    dictionaries: OnceLock<Arc<Dictionaries>>,
    schema: OnceLock<Arc<Schema>>,
    /// The same fields as `raw`, decoded.
    head: pb::Manifest,
    /// The file that was decoded.
    source: Option<Bytes>,
    path: String,
    /// Built on the first look-up by row id.
    pub(crate) row_id_index: FoundOnce<Arc<RowIdIndex>>,
}

impl Manifest {
    /// Decodes a whole manifest file. `path` is for errors.
    pub fn decode(data: &Bytes, path: &str) -> Result<Self> {
        let (message, end) = split_manifest(data, path)?;
        let mut manifest = Self::from_message(&message, path)?;
        if let Some(position) = manifest.head.index_section {
            manifest.index_section = Some(section(data, position, end, "index section", path)?);
        }
        if let Some(position) = manifest
            .head
            .transaction_section_v2
            .or(manifest.head.transaction_section)
        {
            manifest.inline_transaction = Some(section(data, position, end, "transaction", path)?);
        }
        let sections = [
            manifest.head.index_section,
            manifest.head.transaction_section_v2,
            manifest.head.transaction_section,
        ];
        let first = sections
            .into_iter()
            .flatten()
            .filter_map(|at| usize::try_from(at).ok())
            .fold(end, usize::min);
        if first > 0 && manifest.has_dictionaries() {
            manifest.dictionary_section = Some(data.slice(..first));
        }
        manifest.source = Some(data.clone());
        Ok(manifest)
    }

    /// The size in bytes of the file that was decoded; None of a manifest that came otherwise.
    pub fn size_in_file(&self) -> Option<u64> {
        self.source.as_ref().map(|source| source.len() as u64)
    }

    fn from_message(message: &Bytes, path: &str) -> Result<Self> {
        let (raw, fragments) = FragmentList::split(message).map_err(|error| error.of(path))?;
        Self::from_parts(raw, fragments, path)
    }

    /// A manifest from its fields and fragments.
    pub(crate) fn from_parts(raw: RawMessage, fragments: FragmentList, path: &str) -> Result<Self> {
        let head = pb::Manifest::decode(raw.encode().as_slice());
        let head = head.map_err(|error| TableError::corrupt(path, error.to_string()))?;
        if !head.transaction_file.is_empty() {
            check_below(&head.transaction_file, "a transaction", path)?;
        }
        let path = path.to_owned();
        Ok(Self {
            raw,
            fragments,
            index_section: None,
            inline_transaction: None,
            dictionary_section: None,
            dictionaries: OnceLock::new(),
            schema: OnceLock::new(),
            head,
            source: None,
            path,
            row_id_index: FoundOnce::default(),
        })
    }

    /// The same version with the dictionary `section`, and with `fields` that name the positions of the values in it.
    pub(crate) fn with_dictionaries(self, fields: &[file::Field], section: Bytes) -> Result<Self> {
        let mut raw = self.raw;
        let encoded: Vec<Vec<u8>> = fields.iter().map(Message::encode_to_vec).collect();
        raw.set_all_bytes(field::SCHEMA, encoded.iter().map(Vec::as_slice));
        let next = Self::from_parts(raw, self.fragments, &self.path)?;
        Ok(Self {
            index_section: self.index_section,
            inline_transaction: self.inline_transaction,
            dictionary_section: Some(section),
            ..next
        })
    }

    /// The same version with other fragments.
    pub(crate) fn with_fragments(&self, fragments: FragmentList) -> Self {
        Self {
            fragments,
            source: None,
            row_id_index: FoundOnce::default(),
            ..self.clone()
        }
    }

    /// The same version with `bit` set among the flags of readers and writers, or without it.
    pub(crate) fn with_flag(mut self, bit: u64, is_set: bool) -> Self {
        let changed = |flags: u64| if is_set { flags | bit } else { flags & !bit };
        self.head.reader_feature_flags = changed(self.head.reader_feature_flags);
        self.head.writer_feature_flags = changed(self.head.writer_feature_flags);
        self.raw.set_varint(field::READER_FLAGS, self.head.reader_feature_flags);
        self.raw.set_varint(field::WRITER_FLAGS, self.head.writer_feature_flags);
        Self { source: None, ..self }
    }

    pub(crate) fn with_dictionary_section(self, section: Option<Bytes>) -> Self {
        Self {
            dictionary_section: section,
            ..self
        }
    }

    /// The manifest as a whole file: byte for byte what was decoded, or a new version built by
    /// [`Transaction::apply`].
    pub fn encode(&self) -> Result<Bytes> {
        let parts = self.encoded_parts()?;
        Ok(match parts.as_slice() {
            [whole] => whole.clone(),
            _ => Bytes::from(parts.concat()),
        })
    }

    /// The same in parts, which follow each other in the file: those that other versions have too share their bytes.
    pub fn encoded_parts(&self) -> Result<Vec<Bytes>> {
        match &self.source {
            Some(source) => Ok(vec![source.clone()]),
            None => self.build(),
        }
    }

    fn build(&self) -> Result<Vec<Bytes>> {
        let (mut start, raw) = self.sections()?;
        let length = self.fragments.encoded_len().saturating_add(raw.encoded_len());
        let position = push_length(&mut start, length)?;
        let (before, behind): (Vec<_>, Vec<_>) = raw.fields().iter().partition(|field| field.number() < FRAGMENTS);
        before.iter().for_each(|field| start.extend_from_slice(field.record()));
        let mut end = Vec::new();
        behind.iter().for_each(|field| end.extend_from_slice(field.record()));
        push_footer(&mut end, position);
        let [first, added] = self.fragments.records();
        Ok(vec![Bytes::from(start), first, added, Bytes::from(end)])
    }

    /// What stands in front of the message, and the message's fields but the fragments, which name the positions in it.
    fn sections(&self) -> Result<(Vec<u8>, RawMessage)> {
        let mut raw = self.raw.clone();
        let mut out = self.dictionary_section.as_deref().unwrap_or_default().to_vec();
        let index = self
            .index_section
            .as_ref()
            .map(|index| push_section(&mut out, index))
            .transpose()?;
        raw.set_optional_varint(field::INDEX_SECTION, index);
        let transaction = self
            .inline_transaction
            .as_ref()
            .map(|inline| push_section(&mut out, inline))
            .transpose()?;
        raw.remove(field::TRANSACTION_SECTION_OLD);
        raw.set_optional_varint(field::TRANSACTION_SECTION, transaction);
        Ok((out, raw))
    }

    /// The file that it was decoded from, for errors; empty for a version that is not written yet.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The version's number.
    pub fn version(&self) -> u64 {
        self.head.version
    }

    /// When it was committed, in nanoseconds since 1970 (UTC); 0 if the writer did not say.
    pub fn timestamp_ns(&self) -> i64 {
        self.head.timestamp.as_ref().map_or(0, |time| {
            time.seconds
                .saturating_mul(NANOS_PER_SECOND)
                .saturating_add(i64::from(time.nanos))
        })
    }

    /// The feature flags that a reader must support.
    pub fn reader_feature_flags(&self) -> u64 {
        self.head.reader_feature_flags
    }

    /// The feature flags that a writer must support.
    pub fn writer_feature_flags(&self) -> u64 {
        self.head.writer_feature_flags
    }

    /// Refuses a version that this release would misread, and says why.
    pub fn check_readable(&self) -> Result<()> {
        flags::check_readable(self.head.reader_feature_flags)?;
        let tree = self.raw.get(field::FRAGMENT_TREE).is_some();
        let refused = |what: &str| {
            Err(TableError::unsupported(format!(
                "the table cannot be read: it has {what}; use a newer esker"
            )))
        };
        if tree {
            return refused("a fragment tree");
        }
        match self.head.data_format.as_ref().map(|format| format.file_format.as_str()) {
            None | Some("" | "lance") => Ok(()),
            Some(other) => refused(&format!("data files of format '{other}'")),
        }
    }

    /// Refuses a version that this release cannot write a successor of, and says why.
    pub fn check_writable(&self) -> Result<()> {
        self.check_readable()?;
        flags::check_writable(self.head.reader_feature_flags, self.head.writer_feature_flags)
    }

    /// The version of the data files.
    pub fn data_storage_version(&self) -> Result<FileVersion> {
        if let Some(format) = &self.head.data_format {
            let unknown = |error: esker_file::FileError| TableError::unsupported(format!("the table's files: {error}"));
            return FileVersion::parse(&format.version).map_err(unknown);
        }
        // Older manifests do not name it: the first file tells, or a flag if there are no files: the first one will be of the default
        // version then, as pylance has it.
        let first = self.fragments.get(0).transpose()?;
        match first.as_ref().and_then(|fragment| fragment.files().first()) {
            Some(file) => file.version(),
            None if self.head.writer_feature_flags & flags::V2_FORMAT_DEPRECATED != 0 => Ok(FileVersion::V2_2),
            None => Ok(FileVersion::V0_1),
        }
    }

    /// The version of data files that are added: that of those which are there, even where an old release noted another one.
    pub fn storage_version_to_write(&self) -> Result<FileVersion> {
        crate::apply::repair::storage_version(self)
    }

    /// The columns.
    pub fn schema(&self) -> Result<Arc<Schema>> {
        if let Some(known) = self.schema.get() {
            return Ok(known.clone());
        }
        let corrupt = |error: esker_file::FileError| TableError::corrupt(&self.path, error.to_string());
        let found = Schema::from_protos(&self.head.fields, &self.head.schema_metadata).map_err(corrupt)?;
        Ok(self.schema.get_or_init(|| Arc::new(found)).clone())
    }

    /// The values of dictionary columns of 0.1 files, by field id: the manifest file holds them in front of everything else.
    pub fn dictionaries(&self) -> Result<Arc<Dictionaries>> {
        let Some(source) = self.source.as_ref().or(self.dictionary_section.as_ref()) else {
            return Ok(Arc::default());
        };
        if !self.has_dictionaries() {
            return Ok(Arc::default());
        }
        let read =
            || esker_file::read_dictionaries(self.schema()?.as_ref(), source, &self.path).map_err(TableError::from);
        match self.dictionaries.get() {
            Some(kept) => Ok(kept.clone()),
            None => {
                let found = Arc::new(read()?);
                Ok(self.dictionaries.get_or_init(|| found).clone())
            }
        }
    }

    /// Whether there are dictionary columns whose values the manifest file holds.
    pub(crate) fn has_dictionaries(&self) -> bool {
        let held = |field: &file::Field| field.dictionary.is_some_and(|values| values.length > 0);
        self.schema_fields().iter().any(held)
    }

    pub(crate) fn schema_fields(&self) -> &[file::Field] {
        &self.head.fields
    }

    /// Settings that steer writers.
    pub fn config(&self) -> &BTreeMap<String, String> {
        &self.head.config
    }

    /// How small new files are to be.
    pub fn goal(&self) -> Result<Goal> {
        let Some(name) = self.config().get(COMPRESSION) else {
            return Ok(Goal::default());
        };
        Goal::parse(name).map_err(|e| {
            TableError::invalid(format!(
                "the table's config has {COMPRESSION}: {e}; change it by update_config"
            ))
        })
    }

    /// What the user wants to remember about the table.
    pub fn table_metadata(&self) -> &BTreeMap<String, String> {
        &self.head.table_metadata
    }

    /// The Arrow schema's own key-values.
    pub(crate) fn schema_metadata(&self) -> &BTreeMap<String, Bytes> {
        &self.head.schema_metadata
    }

    /// The base paths: roots of files other than the table's own.
    pub fn base_paths(&self) -> &[pb::BasePath] {
        &self.head.base_paths
    }

    /// The indices, one by one.
    pub fn indices(&self) -> Result<Vec<Index>> {
        let section = self.index_section.as_ref().map(decode_section).transpose();
        section
            .map(Option::unwrap_or_default)
            .map_err(|error| error.in_file(&self.path))
    }

    /// The name in `_transactions/` of the transaction that made this version.
    pub fn transaction_file(&self) -> Option<&str> {
        Some(self.head.transaction_file.as_str()).filter(|name| !name.is_empty())
    }

    /// The transaction that made this version, if the manifest file holds it.
    pub fn inline_transaction(&self) -> Result<Option<Transaction>> {
        let decode = |encoded: &Bytes| Transaction::decode(encoded).map_err(|error| error.in_file(&self.path));
        self.inline_transaction.as_ref().map(decode).transpose()
    }

    /// Library and release that wrote the version.
    pub fn writer_version(&self) -> Option<(&str, &str)> {
        self.head
            .writer_version
            .as_ref()
            .map(|writer| (writer.library.as_str(), writer.version.as_str()))
    }

    /// The highest fragment id given out so far, by this version or an earlier one.
    pub fn max_fragment_id(&self) -> Result<Option<u32>> {
        let present = self.fragments.max_id().map_err(|error| error.in_file(&self.path))?;
        Ok(present.max(self.head.max_fragment_id))
    }

    /// The highest field id given out so far, by the schema, the data files and the config: a new column must not reuse the id of a dropped
    /// one, which a staged file may still name.
    pub fn max_field_id(&self) -> Result<i32> {
        let columns = self.schema_fields().iter().map(|field| field.id).max();
        let mut highest = columns.max(noted_field_id(&self.head.config)).unwrap_or(-1);
        for fragment in self.fragments() {
            let in_files = fragment?
                .files()
                .iter()
                .filter_map(|file| file.fields.iter().max().copied())
                .max();
            highest = highest.max(in_files.unwrap_or(-1));
        }
        Ok(highest)
    }

    /// The next stable row id to give out; 0 in a table without them.
    pub fn next_row_id(&self) -> u64 {
        self.head.next_row_id
    }

    /// Whether rows keep their ids when they move.
    pub fn has_stable_row_ids(&self) -> bool {
        self.head.reader_feature_flags & flags::STABLE_ROW_IDS != 0
    }

    /// The branch, if it is not the main line.
    pub fn branch(&self) -> Option<&str> {
        self.head.branch.as_deref()
    }

    /// Whether the version has indices.
    pub fn has_indices(&self) -> bool {
        self.index_section.as_ref().is_some_and(|index| !index.is_empty())
    }

    /// How many fragments it has.
    pub fn num_fragments(&self) -> usize {
        self.fragments.len()
    }

    /// Decodes the fragments one by one, in the order in which a scan returns their rows.
    pub fn fragments(&self) -> impl Iterator<Item = Result<Fragment>> + '_ {
        self.fragments.iter().map(|fragment| {
            fragment
                .map(|f| self.trusted(f))
                .map_err(|error| error.in_file(&self.path))
        })
    }

    /// The fragment at a position of that order.
    pub fn fragment_at(&self, position: usize) -> Result<Option<Fragment>> {
        self.fragments
            .get(position)
            .transpose()
            .map(|found| found.map(|f| self.trusted(f)))
            .map_err(|error| error.in_file(&self.path))
    }

    /// The fragment with that id.
    pub fn fragment(&self, id: u64) -> Result<Option<Fragment>> {
        let found = self.fragments.find(id).map_err(|error| error.in_file(&self.path))?;
        Ok(found.map(|f| self.trusted(f)))
    }

    /// Old releases of Lance, which did not note their name, wrote wrong row counts: these are dropped, so that the files' are used.
    fn trusted(&self, fragment: Fragment) -> Fragment {
        match self.head.writer_version {
            Some(_) => fragment,
            None => fragment.without_row_count(),
        }
    }

    /// Live rows, without decoding the fragments; `None` if an old writer did not note enough.
    pub fn num_rows(&self) -> Result<Option<u64>> {
        if self.head.writer_version.is_none() && self.num_fragments() > 0 {
            return Ok(None);
        }
        let mut total = Some(0u64);
        for summary in self.fragments.summaries() {
            let rows = summary.map_err(|error| error.in_file(&self.path))?.num_rows;
            total = total.zip(rows).and_then(|(total, rows)| total.checked_add(rows));
        }
        Ok(total)
    }

    /// Ids and sizes of the fragments, in order, without decoding them.
    pub(crate) fn fragment_sizes(&self) -> Result<Vec<Summary>> {
        let summaries = self.fragments.summaries();
        summaries
            .map(|summary| summary.map_err(|error| error.in_file(&self.path)))
            .collect()
    }
}

#[cfg(test)]
mod tests;
