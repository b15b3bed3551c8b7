//! Where a fragment's lineage is stored: inline in the manifest, or in a slice of another file.

use bytes::Bytes;
use esker_store::store::StoreRef;

use super::sequence::RowIdSequence;
use super::versions::RowVersions;
use crate::below::check_below;
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::raw::{walk, RawMessage};

const INLINE_IDS: u32 = 5;
const EXTERNAL_IDS: u32 = 6;
const INLINE_UPDATED: u32 = 7;
const EXTERNAL_UPDATED: u32 = 8;
const INLINE_CREATED: u32 = 9;
const EXTERNAL_CREATED: u32 = 10;
/// Lineage in a data file of its own: a newer feature, which esker does not read.
const SPILLED: u32 = 12;

/// Where an encoded sequence lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stored {
    /// In the manifest.
    Inline(Bytes),
    /// In a file below the table's root.
    External { path: String, offset: u64, size: u64 },
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
        }
    }
}

/// The sequences of one fragment, still encoded.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoredLineage {
    pub fragment_id: u64,
    pub ids: Option<Stored>,
    pub updated: Option<Stored>,
    pub created: Option<Stored>,
    pub spilled: bool,
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
                SPILLED => out.spilled = true,
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

    /// Refuses lineage in files that this release does not read.
    pub fn check_not_spilled(&self) -> Result<()> {
        if self.spilled {
            let id = self.fragment_id;
            return Err(TableError::unsupported(format!(
                "fragment {id} has spilled row lineage (field {SPILLED}), which this release does not read; use a newer esker"
            )));
        }
        Ok(())
    }
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
        raw.set_bytes(INLINE_IDS, &ids.encode());
        self
    }

    /// The same fragment with the version that last changed each row.
    #[must_use]
    pub fn with_updated_versions(mut self, versions: &RowVersions) -> Self {
        let raw = self.raw_mut();
        raw.remove(EXTERNAL_UPDATED);
        raw.set_bytes(INLINE_UPDATED, &versions.encode());
        self
    }

    /// The same fragment with the version that first held each row.
    #[must_use]
    pub fn with_created_versions(mut self, versions: &RowVersions) -> Self {
        let raw = self.raw_mut();
        raw.remove(EXTERNAL_CREATED);
        raw.set_bytes(INLINE_CREATED, &versions.encode());
        self
    }

    /// The same fragment without ids and versions, as it goes into a table that has none.
    #[must_use]
    pub fn without_lineage(mut self) -> Self {
        for number in (INLINE_IDS..=EXTERNAL_CREATED).chain([SPILLED]) {
            self.raw_mut().remove(number);
        }
        self
    }
}
