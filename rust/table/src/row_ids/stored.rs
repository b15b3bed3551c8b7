//! Where a fragment's lineage is stored: inline in the manifest, in a slice of another file, or in a column of a data file (spilled).
//!
//! | sequence | inline | other file | spilled | its column |
//! |---|---|---|---|---|
//! | row ids | 5 | 6 | 12 | field -3, `_rowid` |
//! | created at | 9 | 10 | 14 | field -4, `_row_created_at_version` |
//! | last updated at | 7 | 8 | 13 | field -5, `_row_last_updated_at_version` |
//!
//! A spilled column is a required uint64. It lies in the file with the fragment's columns, or in one of its own.

use std::sync::Arc;

use arrow_array::{Array, UInt64Array};
use bytes::Bytes;
use esker_file::schema::Field;
use esker_file::FileReader;
use esker_proto::lance::table as pb;
use esker_store::store::StoreRef;
use prost::Message;

use super::sequence::RowIdSequence;
use super::versions::RowVersions;
use crate::below::check_below;
use crate::error::{Result, TableError};
use crate::fragment::{DataFile, Fragment};
use crate::raw::{walk, RawMessage};

const INLINE_IDS: u32 = 5;
const EXTERNAL_IDS: u32 = 6;
const INLINE_UPDATED: u32 = 7;
const EXTERNAL_UPDATED: u32 = 8;
const INLINE_CREATED: u32 = 9;
const EXTERNAL_CREATED: u32 = 10;
const SPILLED_IDS: u32 = 12;
const SPILLED_UPDATED: u32 = 13;
const SPILLED_CREATED: u32 = 14;
const FILES: u32 = 2;

const ID_FIELD: i32 = -3;
const CREATED_FIELD: i32 = -4;
const UPDATED_FIELD: i32 = -5;

const FORMS: [LineageForm; 3] = [LineageForm::Inline, LineageForm::External, LineageForm::Spilled];

/// A sequence, and its column where it is spilled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineageField {
    /// The ids of the rows.
    Ids,
    /// The versions that created them.
    Created,
    /// The versions that changed them last.
    Updated,
}

/// Where a sequence may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineageForm {
    /// In the manifest.
    Inline,
    /// In a slice of another file.
    External,
    /// In a column of a data file.
    Spilled,
}

impl LineageField {
    /// All, in the order of their columns.
    pub const ALL: [Self; 3] = [Self::Ids, Self::Created, Self::Updated];

    /// The id under which a data file lists the column.
    pub fn id(self) -> i32 {
        match self {
            Self::Ids => ID_FIELD,
            Self::Created => CREATED_FIELD,
            Self::Updated => UPDATED_FIELD,
        }
    }

    /// The column's name in its file.
    pub fn column_name(self) -> &'static str {
        match self {
            Self::Ids => "_rowid",
            Self::Created => "_row_created_at_version",
            Self::Updated => "_row_last_updated_at_version",
        }
    }

    /// The field of a fragment that holds it.
    fn place(self, form: LineageForm) -> u32 {
        let [inline, external, spilled] = match self {
            Self::Ids => [INLINE_IDS, EXTERNAL_IDS, SPILLED_IDS],
            Self::Created => [INLINE_CREATED, EXTERNAL_CREATED, SPILLED_CREATED],
            Self::Updated => [INLINE_UPDATED, EXTERNAL_UPDATED, SPILLED_UPDATED],
        };
        match form {
            LineageForm::Inline => inline,
            LineageForm::External => external,
            LineageForm::Spilled => spilled,
        }
    }
}

/// Whether a field of a fragment says that a sequence is spilled.
pub(crate) fn is_spilled(number: u32) -> bool {
    (SPILLED_IDS..=SPILLED_CREATED).contains(&number)
}

/// Whether a field id in a file's list is that of a spilled sequence.
pub(crate) fn is_lineage_field(id: i32) -> bool {
    (UPDATED_FIELD..=ID_FIELD).contains(&id)
}

/// Where an encoded sequence lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stored {
    /// In the manifest.
    Inline(Bytes),
    /// In a file below the table's root.
    External { path: String, offset: u64, size: u64 },
    /// In a column of a data file.
    Spilled { file: DataFile, field: i32 },
}

impl Stored {
    fn external(message: &Bytes, what: &str) -> Result<Self> {
        let (mut path, mut offset, mut size) = (String::new(), 0, 0);
        for record in walk(message) {
            let record = record.map_err(|error| error.of(what))?;
            match record.number {
                1 => {
                    let name = message.slice(record.payload).to_vec();
                    path = String::from_utf8(name).map_err(|_| TableError::corrupt(what, "expected a path in utf8"))?;
                }
                2 => offset = record.varint,
                3 => size = record.varint,
                _ => {}
            }
        }
        check_below(&path, "row ids", what)?;
        Ok(Self::External { path, offset, size })
    }

    /// The bytes of the sequence.
    pub async fn load(&self, store: &StoreRef) -> Result<Bytes> {
        let (path, offset, size) = match self {
            Self::Inline(bytes) => return Ok(bytes.clone()),
            Self::External { path, offset, size } => (path, *offset, *size),
            Self::Spilled { file, field } => return load_column(store, file, *field).await,
        };
        let file = store.head(path).await?.size;
        let end = offset.checked_add(size).filter(|end| *end <= file).ok_or_else(|| {
            TableError::corrupt(
                path,
                format!("expected {size} bytes at {offset}, found a file of {file} bytes"),
            )
        })?;
        let mut parts = store.get_ranges(path, &[offset..end]).await?;
        Ok(parts.pop().unwrap_or_default())
    }

    /// The bytes of an inline sequence; an error for others, as a commit reads no other file.
    pub fn inline(&self, what: &str) -> Result<&Bytes> {
        match self {
            Self::Inline(bytes) => Ok(bytes),
            Self::External { path, .. } => Err(TableError::unsupported(format!(
                "{what} lies in {path}: tables with external row ids are read, but their rows cannot be changed yet"
            ))),
            Self::Spilled { file, .. } => Err(TableError::unsupported(format!(
                "{what} is spilled row lineage in {}, which this change needs the table's store for; pass the store",
                file.path
            ))),
        }
    }
}

/// The column of a spilled sequence, encoded as it would be in a manifest.
async fn load_column(store: &StoreRef, file: &DataFile, field: i32) -> Result<Bytes> {
    let path = file.location();
    let reader = FileReader::open_sized(store.clone(), &path, file.file_size_bytes).await?;
    let column = |id: i32| {
        let place = file.fields.iter().position(|held| *held == id)?;
        usize::try_from(*file.column_indices.get(place)?).ok()
    };
    let missing = || {
        TableError::corrupt(
            &path,
            format!("expected a column of field {field}, as it is spilled, found none"),
        )
    };
    column(field).ok_or_else(missing)?;
    let wanted = Field {
        id: field,
        name: format!("lineage{field}"),
        logical_type: "uint64".into(),
        ..Default::default()
    };
    let columns = reader.project_with(&[wanted], Some(&column), &Arc::default())?;
    let rows = 0..reader.num_rows();
    let batch = reader.read(&columns, &[rows]).await?;
    let values = batch
        .columns()
        .first()
        .and_then(|values| values.as_any().downcast_ref::<UInt64Array>());
    let values = values.filter(|values| values.null_count() == 0).ok_or_else(|| {
        TableError::corrupt(
            &path,
            format!("expected numbers and no nulls in the column of field {field}"),
        )
    })?;
    Ok(Bytes::from(match field {
        ID_FIELD => RowIdSequence::from_ids(values.values()).encode(),
        _ => RowVersions::from_rows(values.values().iter().copied()).encode(),
    }))
}

/// The sequences of one fragment, still encoded.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoredLineage {
    pub fragment_id: u64,
    pub ids: Option<Stored>,
    pub updated: Option<Stored>,
    pub created: Option<Stored>,
}

impl StoredLineage {
    /// Finds the sequences in a fragment's fields.
    pub fn of(raw: &RawMessage, fragment_id: u64) -> Result<Self> {
        let what = format!("fragment {fragment_id}");
        let mut out = Self {
            fragment_id,
            ..Self::default()
        };
        for field in raw.fields() {
            let inline = || Stored::Inline(field.payload().clone());
            match field.number() {
                INLINE_IDS => out.ids = Some(inline()),
                EXTERNAL_IDS => out.ids = Some(Stored::external(field.payload(), &what)?),
                INLINE_UPDATED => out.updated = Some(inline()),
                EXTERNAL_UPDATED => out.updated = Some(Stored::external(field.payload(), &what)?),
                INLINE_CREATED => out.created = Some(inline()),
                EXTERNAL_CREATED => out.created = Some(Stored::external(field.payload(), &what)?),
                SPILLED_IDS => out.ids = Some(spilled(raw, ID_FIELD, &what)?),
                SPILLED_UPDATED => out.updated = Some(spilled(raw, UPDATED_FIELD, &what)?),
                SPILLED_CREATED => out.created = Some(spilled(raw, CREATED_FIELD, &what)?),
                _ => {}
            }
        }
        Ok(out)
    }

    pub fn ids_name(&self) -> String {
        format!("row ids of fragment {}", self.fragment_id)
    }

    pub fn versions_name(&self) -> String {
        format!("row versions of fragment {}", self.fragment_id)
    }
}

/// The data file among a fragment's fields that holds a spilled sequence.
fn spilled(raw: &RawMessage, field: i32, what: &str) -> Result<Stored> {
    for encoded in raw.all(FILES) {
        let file = pb::DataFile::decode(encoded.payload().clone());
        let file = file.map_err(|error| TableError::corrupt(what, error.to_string()))?;
        if file.fields.contains(&field) {
            check_below(&file.path, "a data file", what)?;
            let file = DataFile::from_proto(file);
            return Ok(Stored::Spilled { file, field });
        }
    }
    let message = format!("expected a data file with field {field}, which is spilled, found none");
    Err(TableError::corrupt(what, message))
}

impl Fragment {
    /// Where the row ids and versions are stored.
    pub(crate) fn lineage(&self) -> Result<StoredLineage> {
        StoredLineage::of(self.raw(), self.id())
    }

    /// The same fragment with the ids of its rows, kept in the manifest.
    #[must_use]
    pub fn with_row_ids(mut self, ids: &RowIdSequence) -> Self {
        let raw = self.raw_mut();
        raw.remove(EXTERNAL_IDS);
        raw.remove(SPILLED_IDS);
        raw.set_bytes(INLINE_IDS, &ids.encode());
        self
    }

    /// The same fragment with the version that last changed each row.
    #[must_use]
    pub fn with_updated_versions(mut self, versions: &RowVersions) -> Self {
        let raw = self.raw_mut();
        raw.remove(EXTERNAL_UPDATED);
        raw.remove(SPILLED_UPDATED);
        raw.set_bytes(INLINE_UPDATED, &versions.encode());
        self
    }

    /// The same fragment with the version that first held each row.
    #[must_use]
    pub fn with_created_versions(mut self, versions: &RowVersions) -> Self {
        let raw = self.raw_mut();
        raw.remove(EXTERNAL_CREATED);
        raw.remove(SPILLED_CREATED);
        raw.set_bytes(INLINE_CREATED, &versions.encode());
        self
    }

    /// The same fragment, which says that a sequence is in a column of one of its files.
    #[must_use]
    pub(crate) fn with_spilled(self, field: LineageField) -> Self {
        self.with_stored_lineage(field, LineageForm::Spilled, &[])
    }

    /// How a sequence is stored, and the encoded message of that.
    pub fn stored_lineage(&self, sequence: LineageField) -> Option<(LineageForm, Bytes)> {
        let at = |form| Some((form, self.raw().get(sequence.place(form))?.payload().clone()));
        FORMS.into_iter().find_map(at)
    }

    /// The same fragment, whose sequence is stored as an encoded message says.
    #[must_use]
    pub fn with_stored_lineage(mut self, sequence: LineageField, form: LineageForm, message: &[u8]) -> Self {
        FORMS
            .into_iter()
            .for_each(|form| self.raw_mut().remove(sequence.place(form)));
        self.raw_mut().set_bytes(sequence.place(form), message);
        self
    }

    /// The ids of its rows, which must be stored inline; none if it has no ids.
    pub fn inline_row_ids(&self) -> Result<Vec<u64>> {
        Ok(RowIdSequence::kept_by(self)?.ids())
    }

    /// Whether a writer spilled lineage of its rows: then it says the ids of all of them, and which versions created them.
    pub(crate) fn has_moved_lineage(&self) -> Result<bool> {
        let stored = self.lineage()?;
        let is_spilled = |place: &Option<Stored>| matches!(place, Some(Stored::Spilled { .. }));
        if stored.created.is_none() || !(is_spilled(&stored.ids) || is_spilled(&stored.created)) {
            return Ok(false);
        }
        match &stored.ids {
            Some(Stored::Spilled { .. }) => Ok(true),
            Some(Stored::Inline(ids)) => {
                let ids = RowIdSequence::decode(ids, &stored.ids_name())?;
                Ok(Some(ids.len()) == self.physical_rows())
            }
            _ => Ok(false),
        }
    }

    /// Whether a sequence is spilled.
    pub(crate) fn has_spilled_lineage(&self) -> bool {
        self.raw().fields().iter().any(|field| is_spilled(field.number()))
    }

    /// The same fragment with its spilled sequences inline, as a commit needs them.
    pub(crate) async fn with_lineage_inline(mut self, store: &StoreRef) -> Result<Self> {
        let stored = self.lineage()?;
        let places = [
            (stored.ids, SPILLED_IDS, INLINE_IDS),
            (stored.updated, SPILLED_UPDATED, INLINE_UPDATED),
            (stored.created, SPILLED_CREATED, INLINE_CREATED),
        ];
        for (stored, spilled, inline) in places {
            if let Some(stored @ Stored::Spilled { .. }) = stored {
                let encoded = stored.load(store).await?;
                self.raw_mut().remove(spilled);
                self.raw_mut().set_bytes(inline, &encoded);
            }
        }
        Ok(self)
    }

    /// The same fragment with those sequences spilled again that are as in `inline`, which was made of `spilled`.
    #[must_use]
    pub(crate) fn with_lineage_spilled(mut self, spilled: &Self, inline: &Self) -> Self {
        let places = [
            (SPILLED_IDS, INLINE_IDS, ID_FIELD),
            (SPILLED_UPDATED, INLINE_UPDATED, UPDATED_FIELD),
            (SPILLED_CREATED, INLINE_CREATED, CREATED_FIELD),
        ];
        for (marker, number, field) in places {
            let held = |fragment: &Self| fragment.raw().get(number).map(|found| found.payload().clone());
            let has_file = self.files().iter().any(|file| file.fields.contains(&field));
            let message = spilled.raw().get(marker).map(|found| found.payload().clone());
            if let (Some(message), true, true) = (message, has_file, held(&self) == held(inline)) {
                self.raw_mut().remove(number);
                self.raw_mut().set_bytes(marker, &message);
            }
        }
        self
    }

    /// The same fragment with the ids and versions of `other`, wherever they are stored.
    #[must_use]
    pub(crate) fn with_lineage_of(self, other: &Self) -> Self {
        let mut fragment = self.without_lineage();
        let stored = (INLINE_IDS..=EXTERNAL_CREATED).chain(SPILLED_IDS..=SPILLED_CREATED);
        for number in stored {
            if let Some(found) = other.raw().get(number) {
                fragment.raw_mut().set_bytes(number, found.payload());
            }
        }
        fragment
    }

    /// The same fragment without ids and versions, as it goes into a table that has none.
    #[must_use]
    pub fn without_lineage(mut self) -> Self {
        for number in (INLINE_IDS..=EXTERNAL_CREATED).chain(SPILLED_IDS..=SPILLED_CREATED) {
            self.raw_mut().remove(number);
        }
        self
    }
}
