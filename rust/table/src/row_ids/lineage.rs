//! The lineage of one fragment's rows, decoded: their ids, and the versions that created and last updated them.

use esker_store::store::StoreRef;

use super::sequence::RowIdSequence;
use super::stored::{Stored, StoredLineage};
use super::versions::RowVersions;
use crate::error::{Result, TableError};
use crate::fragment::Fragment;

/// The version of rows whose fragment does not say, as in other readers.
pub(super) const FIRST_VERSION: u64 = 1;

/// Which sequences of a fragment are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineageParts {
    /// The ids of the rows.
    pub ids: bool,
    /// Either of the versions.
    pub versions: bool,
}

/// The ids and versions of a fragment's rows.
#[derive(Debug, Clone, Default)]
pub struct RowLineage {
    /// The ids; `None` in a table without stable ones.
    pub ids: Option<RowIdSequence>,
    /// The versions that created the rows.
    pub created: RowVersions,
    /// The versions that last changed the rows.
    pub updated: RowVersions,
}

impl RowLineage {
    /// Reads the wanted parts for a fragment of `rows` rows, deleted ones included.
    pub async fn read(store: &StoreRef, fragment: &Fragment, rows: u64, wanted: LineageParts) -> Result<Self> {
        let stored = fragment.lineage()?;
        let mut out = Self::default();
        if let Some(ids) = stored.ids.as_ref().filter(|_| wanted.ids) {
            let sequence = RowIdSequence::decode(&ids.load(store).await?, &stored.ids_name())?;
            check_len(&stored.ids_name(), "row ids", sequence.len(), rows)?;
            out.ids = Some(sequence);
        }
        if wanted.versions {
            for (place, versions) in [(&stored.created, &mut out.created), (&stored.updated, &mut out.updated)] {
                let encoded = match place {
                    Some(place) => Some(place.load(store).await?),
                    None => None,
                };
                *versions = decode_versions(encoded.as_ref(), &stored, rows)?;
            }
        }
        Ok(out)
    }

    /// The lineage that the manifest holds inline, which is all that a commit can see.
    pub fn inline(fragment: &Fragment) -> Result<Self> {
        let stored = fragment.lineage()?;
        let (ids_name, versions_name) = (stored.ids_name(), stored.versions_name());
        let rows = fragment.physical_rows().unwrap_or(0);
        let ids = match &stored.ids {
            Some(place) => {
                let ids = RowIdSequence::decode(place.inline(&ids_name)?, &ids_name)?;
                check_len(&ids_name, "row ids", ids.len(), rows)?;
                Some(ids)
            }
            None => None,
        };
        let versions = |place: &Option<Stored>| {
            let encoded = place.as_ref().map(|place| place.inline(&versions_name)).transpose()?;
            decode_versions(encoded, &stored, rows)
        };
        Ok(Self {
            ids,
            created: versions(&stored.created)?,
            updated: versions(&stored.updated)?,
        })
    }
}

fn decode_versions(encoded: Option<&bytes::Bytes>, stored: &StoredLineage, rows: u64) -> Result<RowVersions> {
    let Some(encoded) = encoded else {
        return Ok(RowVersions::uniform(rows, FIRST_VERSION));
    };
    let versions = RowVersions::decode(encoded, &stored.versions_name())?;
    check_len(&stored.versions_name(), "row versions", versions.len(), rows)?;
    Ok(versions)
}

fn check_len(what: &str, of: &str, found: u64, rows: u64) -> Result<()> {
    if found == rows {
        return Ok(());
    }
    let message = format!("expected {of} for {rows} rows, found {found}");
    Err(TableError::corrupt(what, message))
}
