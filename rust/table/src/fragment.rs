//! A fragment: a run of rows, the data files of their columns, and the deletion file.
//!
//! The encoded message is kept, so that fields that esker does not decode (row ids, their lineage, fields of newer writers) survive.

use bytes::Bytes;
use esker_file::version::FileVersion;
use esker_proto::lance::table as pb;
use esker_store::mount::mounted_path;
use prost::Message;

use crate::below::check_below;
use crate::error::{Result, TableError};
use crate::raw::{walk, RawMessage};
use crate::row_ids::is_spilled;

const ID: u32 = 1;
const FILES: u32 = 2;
const DELETION_FILE: u32 = 3;
const PHYSICAL_ROWS: u32 = 4;
const INLINE_ROW_IDS: u32 = 5;
const EXTERNAL_ROW_IDS: u32 = 6;
const SPILLED_ROW_IDS: u32 = 12;
/// Row ids, and the versions that rows were updated and created in.
const EXTERNAL_LINEAGE: [u32; 3] = [EXTERNAL_ROW_IDS, 8, 10];
const NUM_DELETED_ROWS: u32 = 4;

/// The field id, in a file's list, of a column that another file took over or that was dropped (a tombstone).
pub(crate) const TAKEN_OVER: i32 = -2;

/// What an error calls a fragment before its file is known.
const WHAT: &str = "fragment";

/// One data file of a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFile {
    /// Relative to `data/` of the base path.
    pub path: String,
    /// The ids of the fields that the file holds; -2 (a tombstone) if another file took the field over.
    pub fields: Vec<i32>,
    /// For each field its column index in the file; -1 if it has no column of its own. Empty for 0.1 files.
    pub column_indices: Vec<i32>,
    /// (2, 0) for version 2.0, though the footer says 0.3; (0, 0) means 0.1.
    pub file_major_version: u32,
    /// See `file_major_version`.
    pub file_minor_version: u32,
    /// Size of the file in bytes, where the writer noted it.
    pub file_size_bytes: Option<u64>,
    /// The base path that it lies under; `None`: the table's own root.
    pub base_id: Option<u32>,
}

impl DataFile {
    /// The version of the file format.
    pub fn version(&self) -> Result<FileVersion> {
        let number = |value: u32| {
            u16::try_from(value)
                .map_err(|_| TableError::corrupt(&self.path, format!("expected a file version, found {value} in it")))
        };
        Ok(FileVersion::from_footer(
            number(self.file_major_version)?,
            number(self.file_minor_version)?,
        )?)
    }

    /// Where it lies, for the store of its table.
    pub fn location(&self) -> String {
        under_base(self.base_id, format!("data/{}", self.path))
    }

    pub(crate) fn from_proto(proto: pb::DataFile) -> Self {
        Self {
            path: proto.path,
            fields: proto.fields,
            column_indices: proto.column_indices,
            file_major_version: proto.file_major_version,
            file_minor_version: proto.file_minor_version,
            file_size_bytes: (proto.file_size_bytes != 0).then_some(proto.file_size_bytes),
            base_id: proto.base_id,
        }
    }

    pub(crate) fn to_proto(&self) -> pb::DataFile {
        pb::DataFile {
            path: self.path.clone(),
            fields: self.fields.clone(),
            column_indices: self.column_indices.clone(),
            file_major_version: self.file_major_version,
            file_minor_version: self.file_minor_version,
            file_size_bytes: self.file_size_bytes.unwrap_or(0),
            base_id: self.base_id,
        }
    }
}

/// The path of a file of the table: relative to its root, or to the base path that the file lies under.
pub(crate) fn under_base(base_id: Option<u32>, path: String) -> String {
    match base_id {
        Some(id) => mounted_path(id, &path),
        None => path,
    }
}

/// How a deletion file holds its row offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionFileType {
    /// An Arrow IPC file with one column.
    Arrow,
    /// A portable roaring bitmap.
    Bitmap,
}

/// Names the deleted rows of a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionFile {
    /// How it holds them.
    pub file_type: DeletionFileType,
    /// The version that the deleting writer had read.
    pub read_version: u64,
    /// Random, so that concurrent writers do not collide.
    pub id: u64,
    /// How many rows it deletes, where the writer noted it.
    pub num_deleted_rows: Option<u64>,
    /// The base path that it lies under; `None`: the table's own root.
    pub base_id: Option<u32>,
}

impl DeletionFile {
    /// Where it lies, for the store of its table.
    pub fn location(&self, fragment_id: u64) -> String {
        let extension = match self.file_type {
            DeletionFileType::Arrow => "arrow",
            DeletionFileType::Bitmap => "bin",
        };
        let path = format!("_deletions/{fragment_id}-{}-{}.{extension}", self.read_version, self.id);
        under_base(self.base_id, path)
    }

    fn from_proto(proto: &pb::DeletionFile) -> Result<Self> {
        let file_type = match proto.file_type {
            0 => DeletionFileType::Arrow,
            1 => DeletionFileType::Bitmap,
            other => {
                let message = format!("expected deletion file type 0 or 1, found {other}; use a newer esker");
                return Err(TableError::unsupported(message));
            }
        };
        Ok(Self {
            file_type,
            read_version: proto.read_version,
            id: proto.id,
            num_deleted_rows: (proto.num_deleted_rows != 0).then_some(proto.num_deleted_rows),
            base_id: proto.base_id,
        })
    }

    fn to_proto(&self) -> pb::DeletionFile {
        pb::DeletionFile {
            file_type: match self.file_type {
                DeletionFileType::Arrow => 0,
                DeletionFileType::Bitmap => 1,
            },
            read_version: self.read_version,
            id: self.id,
            num_deleted_rows: self.num_deleted_rows.unwrap_or(0),
            base_id: self.base_id,
        }
    }
}

/// A run of rows and where they are.
#[derive(Debug, Clone)]
pub struct Fragment {
    raw: RawMessage,
    id: u64,
    files: Vec<DataFile>,
    deletion_file: Option<DeletionFile>,
}

impl PartialEq for Fragment {
    /// Equal if they encode to the same bytes.
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Fragment {}

impl Fragment {
    /// A new fragment of `physical_rows` rows. Its id is given out when it is committed.
    pub fn new(files: Vec<DataFile>, physical_rows: u64) -> Self {
        let encoded: Vec<Vec<u8>> = files.iter().map(|file| file.to_proto().encode_to_vec()).collect();
        let mut raw = RawMessage::default();
        raw.set_all_bytes(FILES, encoded.iter().map(Vec::as_slice));
        raw.set_varint(PHYSICAL_ROWS, physical_rows);
        Self {
            raw,
            id: 0,
            files,
            deletion_file: None,
        }
    }

    /// Decodes one fragment message.
    pub fn decode(message: &Bytes) -> Result<Self> {
        let raw = RawMessage::decode(message).map_err(|error| error.of(WHAT))?;
        let damaged = |error: prost::DecodeError| TableError::corrupt(WHAT, error.to_string());
        let proto = pb::DataFragment::decode(message.clone()).map_err(damaged)?;
        let deletion_file = proto.deletion_file.as_ref().map(DeletionFile::from_proto).transpose()?;
        let files: Vec<DataFile> = proto.files.into_iter().map(DataFile::from_proto).collect();
        for file in &files {
            check_below(&file.path, "a data file", WHAT)?;
        }
        Ok(Self {
            raw,
            id: proto.id,
            files,
            deletion_file,
        })
    }

    /// The fragment as one message, with all that [`Fragment::decode`] found in it.
    pub fn encode(&self) -> Vec<u8> {
        self.raw.encode()
    }

    /// Unique in the table for good; 0 until it is committed.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The files that hold its columns. A column that none of them holds is null in all rows.
    pub fn files(&self) -> &[DataFile] {
        &self.files
    }

    /// Names the deleted rows; `None`: no row is deleted.
    pub fn deletion_file(&self) -> Option<&DeletionFile> {
        self.deletion_file.as_ref()
    }

    /// Rows in the files, deleted ones included; `None` in tables whose writers did not note it.
    pub fn physical_rows(&self) -> Option<u64> {
        self.raw
            .get(PHYSICAL_ROWS)
            .map(|field| field.varint())
            .filter(|rows| *rows != 0)
    }

    /// Deleted rows; `None` in tables whose writers did not note it.
    pub fn num_deletions(&self) -> Option<u64> {
        self.deletion_file
            .as_ref()
            .map_or(Some(0), |file| file.num_deleted_rows)
    }

    /// Live rows: those that are not deleted; `None` if unknown without reading files.
    pub fn num_rows(&self) -> Option<u64> {
        self.physical_rows()?.checked_sub(self.num_deletions()?)
    }

    /// Whether the rows have stable ids.
    pub fn has_row_ids(&self) -> bool {
        let stored = [INLINE_ROW_IDS, EXTERNAL_ROW_IDS, SPILLED_ROW_IDS];
        stored.iter().any(|number| self.raw.get(*number).is_some())
    }

    pub(crate) fn raw(&self) -> &RawMessage {
        &self.raw
    }

    pub(crate) fn raw_mut(&mut self) -> &mut RawMessage {
        &mut self.raw
    }

    /// The same fragment under the id that the commit gives it.
    #[must_use]
    pub fn with_id(mut self, id: u64) -> Self {
        self.raw.set_varint(ID, id);
        self.id = id;
        self
    }

    /// The same fragment without its row count, for writers whose counts are wrong.
    #[must_use]
    pub(crate) fn without_row_count(mut self) -> Self {
        self.raw.remove(PHYSICAL_ROWS);
        self
    }

    /// The same fragment with only the files that `keep` accepts, unknown fields included.
    #[must_use]
    pub fn with_files_kept(mut self, keep: impl Fn(&DataFile) -> bool) -> Self {
        let verdicts: Vec<bool> = self.files.iter().map(keep).collect();
        let kept = self.raw.all(FILES).zip(&verdicts).filter(|(_, keep)| **keep);
        let kept: Vec<Bytes> = kept.map(|(field, _)| field.payload().clone()).collect();
        self.raw.set_all_bytes(FILES, kept.iter().map(AsRef::as_ref));
        let mut verdicts = verdicts.into_iter();
        self.files.retain(|_| verdicts.next().unwrap_or(true));
        self
    }

    /// The same fragment with one more file.
    #[must_use]
    pub fn with_file(mut self, file: DataFile) -> Self {
        self.raw.append_bytes(FILES, &file.to_proto().encode_to_vec());
        self.files.push(file);
        self
    }

    /// The same fragment with `file` in place of the file at `position`.
    #[must_use]
    pub fn with_file_at(mut self, position: usize, file: DataFile) -> Self {
        let encoded = Bytes::from(file.to_proto().encode_to_vec());
        let files = self.raw.all(FILES).map(|field| field.payload().clone());
        let files: Vec<Bytes> = files
            .enumerate()
            .map(|(index, old)| if index == position { encoded.clone() } else { old })
            .collect();
        self.raw.set_all_bytes(FILES, files.iter().map(AsRef::as_ref));
        if let Some(old) = self.files.get_mut(position) {
            *old = file;
        }
        self
    }

    /// The same fragment with `file`, which takes over its columns: other files that held them get tombstones (-2).
    #[must_use]
    pub fn with_replacing_file(mut self, file: DataFile) -> Self {
        for (position, old) in self.files.clone().into_iter().enumerate() {
            if old.fields.iter().any(|id| file.fields.contains(id)) {
                let left = |id: &i32| if file.fields.contains(id) { TAKEN_OVER } else { *id };
                let fields = old.fields.iter().map(left).collect();
                self = self.with_file_at(position, DataFile { fields, ..old });
            }
        }
        self.with_file(file)
    }

    /// Whether row ids or versions of rows lie in files of their own.
    pub(crate) fn has_external_lineage(&self) -> bool {
        EXTERNAL_LINEAGE.iter().any(|number| self.raw.get(*number).is_some())
    }

    /// The same fragment in a shallow clone: files in the table's own root lie under base path `id` there.
    #[must_use]
    pub(crate) fn borrowed(mut self, id: u32) -> Self {
        for (position, file) in self.files.clone().into_iter().enumerate() {
            if file.base_id.is_none() {
                let base_id = Some(id);
                self = self.with_file_at(position, DataFile { base_id, ..file });
            }
        }
        match self.deletion_file.clone() {
            Some(file) if file.base_id.is_none() => {
                let base_id = Some(id);
                self.with_deletion_file(Some(DeletionFile { base_id, ..file }))
            }
            _ => self,
        }
    }

    /// The same fragment in a deep clone, which has copies of all files in its own root.
    #[must_use]
    pub(crate) fn at_home(mut self) -> Self {
        for (position, file) in self.files.clone().into_iter().enumerate() {
            let base_id = None;
            self = self.with_file_at(position, DataFile { base_id, ..file });
        }
        match self.deletion_file.clone() {
            Some(file) => {
                let base_id = None;
                self.with_deletion_file(Some(DeletionFile { base_id, ..file }))
            }
            None => self,
        }
    }

    /// The same fragment with other deleted rows.
    #[must_use]
    pub fn with_deletion_file(mut self, file: Option<DeletionFile>) -> Self {
        match &file {
            Some(file) => self.raw.set_bytes(DELETION_FILE, &file.to_proto().encode_to_vec()),
            None => self.raw.remove(DELETION_FILE),
        }
        self.deletion_file = file;
        self
    }
}

/// The numbers of an encoded fragment that a row count needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub id: u64,
    pub has_deletions: bool,
    /// Row ids or row versions lie in columns of its files.
    pub has_spilled_lineage: bool,
    /// Rows in the files; 0 where the writer did not note it.
    pub physical_rows: u64,
    /// Live rows, if the writer noted enough.
    pub num_rows: Option<u64>,
}

/// Reads the few numbers of a [`Summary`] without decoding the fragment.
pub(crate) fn summarize(message: &[u8]) -> Result<Summary> {
    let (mut id, mut physical, mut deleted) = (0, 0, Some(0));
    let (mut has_deletions, mut has_spilled_lineage) = (false, false);
    for record in walk(message) {
        let record = record.map_err(|error| error.of(WHAT))?;
        match record.number {
            ID => id = record.varint,
            PHYSICAL_ROWS => physical = record.varint,
            DELETION_FILE => {
                has_deletions = true;
                let mut count = 0;
                for inner in walk(message.get(record.payload).unwrap_or_default()) {
                    let inner = inner.map_err(|error| error.of(WHAT))?;
                    if inner.number == NUM_DELETED_ROWS {
                        count = inner.varint;
                    }
                }
                deleted = (count != 0).then_some(count);
            }
            number if is_spilled(number) => has_spilled_lineage = true,
            _ => {}
        }
    }
    let num_rows = match deleted {
        Some(deleted) if physical != 0 => u64::checked_sub(physical, deleted),
        _ => None,
    };
    Ok(Summary {
        id,
        has_deletions,
        has_spilled_lineage,
        physical_rows: physical,
        num_rows,
    })
}

#[cfg(test)]
mod tests;
