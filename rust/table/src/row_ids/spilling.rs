//! Spills lineage: writes sequences to columns of data files where the table's config asks for it, under pylance's keys and by its rules.
//!
//! | key | what it says |
//! |---|---|
//! | `lance.row_lineage.spill` | `true`, in any case: long sequences are spilled |
//! | `lance.row_lineage.inline_max_bytes` | the most bytes that a sequence may take in the manifest; 204,800 by default |
//!
//! | rows | which sequences | where |
//! |---|---|---|
//! | moved by an update or an upsert | ids and created versions; the commit decides the updated ones | a file of their own beside the fragment's |
//! | rewritten by a compaction | all three | the last columns of the file that it writes |
//! | new | none, as their ids are decided by the commit | |
//!
//! Files of version 0.1 hold none.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use esker_file::schema::{Field, Schema};
use esker_file::{FileVersion, FileWriter, Goal, WriteOptions};
use esker_store::store::StoreRef;

use super::moved::MovedRows;
use super::sequence::RowIdSequence;
use super::stored::LineageField;
use super::versions::RowVersions;
use crate::error::{Result, TableError};
use crate::fragment::{DataFile, Fragment};
use crate::manifest::Manifest;
use crate::write::{data_file, data_file_name, StagedFragment};

const SPILL: &str = "lance.row_lineage.spill";
const INLINE_MAX_BYTES: &str = "lance.row_lineage.inline_max_bytes";
const DEFAULT_INLINE_MAX_BYTES: u64 = 200 * 1024;

/// What a table's config says about sequences that take many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spilling {
    inline_max_bytes: u64,
}

/// A sequence as a column.
#[derive(Debug, Clone)]
pub(crate) struct LineageColumn {
    /// Which sequence it is.
    pub field: LineageField,
    /// Its value for each row.
    pub values: ArrayRef,
}

impl LineageColumn {
    /// The column's field in a file, under an id.
    pub fn schema_field(&self, id: i32) -> Field {
        Field {
            id,
            name: self.field.column_name().into(),
            logical_type: "uint64".into(),
            ..Field::default()
        }
    }
}

/// The lineage of rows, before it is known where it will lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sequences<'a> {
    pub ids: &'a RowIdSequence,
    pub created: &'a RowVersions,
    /// `None` if the commit decides them.
    pub updated: Option<&'a RowVersions>,
}

/// Fragments whose lineage is spilled where it is long.
#[derive(Debug, Clone, Default)]
pub struct SpilledFragments {
    /// The fragments, in their order.
    pub fragments: Vec<Fragment>,
    /// The staged files, relative to the table's root.
    pub files: Vec<String>,
}

impl Spilling {
    /// What `config` asks for; `None` if all lineage is inline.
    pub fn of(config: &BTreeMap<String, String>) -> Result<Option<Self>> {
        let wanted = config
            .get(SPILL)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if !wanted {
            return Ok(None);
        }
        let inline_max_bytes = match config.get(INLINE_MAX_BYTES) {
            None => DEFAULT_INLINE_MAX_BYTES,
            Some(text) => text.parse().map_err(|error| {
                TableError::invalid(format!(
                    "table config {INLINE_MAX_BYTES}={text:?} is not a byte count: {error}; set it to a number of bytes"
                ))
            })?,
        };
        Ok(Some(Self { inline_max_bytes }))
    }

    /// The columns of the sequences that take too many bytes for the manifest.
    pub(crate) fn columns(self, rows: Sequences<'_>) -> Vec<LineageColumn> {
        let is_long = |encoded: Vec<u8>| encoded.len() as u64 > self.inline_max_bytes;
        let mut out = Vec::new();
        let mut column = |field, values: Vec<u64>| {
            let values = Arc::new(UInt64Array::from(values));
            out.push(LineageColumn { field, values });
        };
        if is_long(rows.ids.encode()) {
            column(LineageField::Ids, rows.ids.ids());
        }
        if is_long(rows.created.encode()) {
            column(LineageField::Created, rows.created.rows());
        }
        if let Some(updated) = rows.updated.filter(|updated| is_long(updated.encode())) {
            column(LineageField::Updated, updated.rows());
        }
        out
    }

    /// Spills the lineage of rows that moved: fragments with the ids that their writer kept, all of whose rows come from the fragments
    /// `from` of `base`. On an error, nothing stays behind.
    pub async fn moved(
        self,
        store: &StoreRef,
        base: &Manifest,
        from: &HashSet<u64>,
        fragments: Vec<Fragment>,
    ) -> Result<SpilledFragments> {
        let mut out = SpilledFragments::default();
        let may_spill = |fragment: &Fragment| Ok::<_, TableError>(fragment.has_row_ids() && holds_columns(fragment)?);
        let mut any = false;
        for fragment in &fragments {
            any |= may_spill(fragment)?;
        }
        if !any {
            out.fragments = fragments;
            return Ok(out);
        }
        let inline = base.with_lineage_inline(store, |id| from.contains(&id)).await?;
        let mut rows = MovedRows::from_fragments(&inline, |id| from.contains(&id))?;
        for fragment in fragments {
            match self.spilled(store, &mut rows, base, fragment).await {
                Ok((fragment, file)) => {
                    out.fragments.push(fragment);
                    out.files.extend(file);
                }
                Err(error) => {
                    for path in &out.files {
                        // The error is on its way; a file that cannot be removed becomes an orphan, which clean-up removes.
                        let _ = store.delete(path).await;
                    }
                    return Err(error);
                }
            }
        }
        Ok(out)
    }

    async fn spilled(
        self,
        store: &StoreRef,
        rows: &mut MovedRows<'_>,
        base: &Manifest,
        fragment: Fragment,
    ) -> Result<(Fragment, Option<String>)> {
        let ids = RowIdSequence::kept_by(&fragment)?;
        // Rows whose ids the commit decides leave no room for a column.
        if ids.is_empty() || Some(ids.len()) != fragment.physical_rows() || !holds_columns(&fragment)? {
            return Ok((fragment, None));
        }
        let created = rows.created_versions(&ids, base.version().saturating_add(1))?;
        let columns = self.columns(Sequences {
            ids: &ids,
            created: &created,
            updated: None,
        });
        if columns.is_empty() {
            return Ok((fragment, None));
        }
        let file = write_columns(store, &fragment, &columns, base.goal()?).await?;
        let path = file.location();
        // A reader of the transaction needs both, wherever they lie.
        let mut fragment = fragment.with_created_versions(&created).with_file(file);
        for column in &columns {
            fragment = fragment.with_spilled(column.field);
        }
        Ok((fragment, Some(path)))
    }
}

fn holds_columns(fragment: &Fragment) -> Result<bool> {
    match fragment.files().first() {
        Some(file) => Ok(file.version()? != FileVersion::V0_1),
        None => Ok(false),
    }
}

/// Writes a file of lineage beside the first file of a fragment, in its version.
async fn write_columns(
    store: &StoreRef,
    fragment: &Fragment,
    columns: &[LineageColumn],
    goal: Goal,
) -> Result<DataFile> {
    let beside = fragment.files().first();
    let version = beside.map(DataFile::version).transpose()?.unwrap_or(FileVersion::V2_0);
    let named = data_file(&data_file_name(), beside.and_then(|file| file.base_id));
    let fields = (0..).zip(columns).map(|(id, column)| column.schema_field(id)).collect();
    let schema = Schema {
        fields,
        ..Schema::default()
    };
    let options = WriteOptions {
        version,
        goal,
        staging: true,
        ..WriteOptions::default()
    };
    let values = columns.iter().map(|column| column.values.clone()).collect();
    let batch = RecordBatch::try_new(Arc::new(schema.to_arrow()?), values);
    let batch = batch.map_err(|error| TableError::invalid(error.to_string()))?;
    let mut writer = FileWriter::create(store, &named.location(), &schema, options).await?;
    if let Err(error) = writer.write(&batch).await {
        let _ = writer.abort().await;
        return Err(error.into());
    }
    let staged = StagedFragment::of(named, writer.finish().await?);
    let written = staged.fragment.files().first().cloned();
    let written = written.ok_or_else(|| TableError::invalid("expected a file of lineage, found none"))?;
    Ok(DataFile {
        fields: columns.iter().map(|column| column.field.id()).collect(),
        ..written
    })
}
