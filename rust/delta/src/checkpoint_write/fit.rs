//! Fits file actions, of commits or of a base checkpoint, to the columns that are written.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{new_null_array, Array, ArrayRef, BooleanArray, StringArray, StructArray};
use arrow_schema::{DataType, Field, Fields};
use arrow_select::filter::filter;
use arrow_select::zip::zip;

use super::action_line::FileKind;
use super::action_types::ActionTypes;
use super::conform::conform;
use super::file_rows::FileRows;
use super::json_columns::{column, Misfit};
use super::statistics_text::statistics_json;
use crate::arrays::{texts, TextMap};
use crate::error::{DeltaError, Result};
use crate::snapshot::Snapshot;

/// A piece of a row group: some actions to write.
#[derive(Clone)]
pub(crate) struct Piece {
    pub(crate) data: Arc<PieceData>,
    /// Which of them are written; `None` for all.
    pub(crate) alive: Option<BooleanArray>,
    /// How many of them are written.
    pub(crate) live: usize,
}

/// Where actions come from.
pub(crate) enum PieceData {
    /// Files of commits.
    Rows(FileKind, Box<FileRows>),
    /// Files of a base checkpoint.
    Base(FileKind, StructArray),
    /// Other actions, as a finished column.
    Ready(&'static str, StructArray),
}

impl Piece {
    /// The kind of its file actions, if it has any.
    pub(crate) fn kind(&self) -> Option<FileKind> {
        match self.data.as_ref() {
            PieceData::Rows(kind, _) | PieceData::Base(kind, _) => Some(*kind),
            PieceData::Ready(_, _) => None,
        }
    }
}

/// Converts pieces to columns.
pub(crate) struct Fitter {
    types: ActionTypes,
    snapshot: Snapshot,
}

impl Fitter {
    pub(crate) fn new(types: ActionTypes, snapshot: Snapshot) -> Self {
        Self { types, snapshot }
    }

    pub(crate) fn types(&self) -> &ActionTypes {
        &self.types
    }

    /// The column of a piece, and its name.
    pub(crate) fn fit(&self, piece: &Piece) -> Result<(&'static str, StructArray)> {
        let (kind, array) = match piece.data.as_ref() {
            PieceData::Ready(name, array) => return Ok((name, array.clone())),
            PieceData::Rows(kind, rows) => (*kind, rows.to_array(self.fields(*kind)?)?),
            PieceData::Base(kind, array) => (*kind, array.clone()),
        };
        let array = match &piece.alive {
            Some(alive) => filter(&array, alive).map_err(bug)?.as_struct().clone(),
            None => array,
        };
        Ok((kind.name(), self.columns(kind, &array)?))
    }

    fn fields(&self, kind: FileKind) -> Result<&Fields> {
        let fields = self.types.of(kind.name());
        fields.ok_or_else(|| DeltaError::invalid(format!("expected a column {}, found none", kind.name())))
    }

    fn columns(&self, kind: FileKind, array: &StructArray) -> Result<StructArray> {
        let fields = self.fields(kind)?;
        let rows = array.len();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(fields.len());
        for field in fields {
            let found = array.column_by_name(field.name());
            columns.push(match (field.name().as_str(), found) {
                ("dataChange", _) => Arc::new(BooleanArray::from(vec![false; rows])),
                ("stats", _) => Arc::new(stats(array)),
                ("stats_parsed", _) => typed_stats(array, field)?,
                ("partitionValues_parsed", _) => self.partition_values(array, field)?,
                (_, Some(found)) => conform(found, field.data_type(), false).map_err(|error| {
                    DeltaError::unsupported(format!(
                        "no checkpoint was written: {}.{} of the last checkpoint: {error}",
                        kind.name(),
                        field.name()
                    ))
                })?,
                (_, None) => new_null_array(field.data_type(), rows),
            });
        }
        StructArray::try_new_with_length(fields.clone(), columns, None, rows).map_err(bug)
    }

    /// Typed values of partition columns, by the names that files have for them.
    fn partition_values(&self, array: &StructArray, field: &Field) -> Result<ArrayRef> {
        let DataType::Struct(fields) = field.data_type() else {
            return Err(DeltaError::invalid("expected partitionValues_parsed as a struct"));
        };
        let map = TextMap::of(array, "partitionValues");
        let mut columns = Vec::with_capacity(fields.len());
        for field in fields {
            let (schema, physical) = (&self.snapshot.schema, field.name());
            let known = schema
                .partition_fields()
                .find(|known| known.physical_name(schema.mapping) == physical);
            let name = known.map_or(physical, |known| &known.name);
            let texts: Vec<Option<&str>> = (0..array.len())
                .map(|row| map.as_ref()?.entries(row).find(|(name, _)| name == physical)?.1)
                .collect();
            let values = self.snapshot.parse_partition_values(name, &texts)?;
            columns.push(conform(&values, field.data_type(), false).map_err(bug)?);
        }
        let array = StructArray::try_new_with_length(fields.clone(), columns, None, array.len());
        Ok(Arc::new(array.map_err(bug)?))
    }
}

/// Statistics as texts, converted from the typed ones if there are no texts.
fn stats(array: &StructArray) -> StringArray {
    let given = texts(array, "stats").unwrap_or_else(|| StringArray::new_null(array.len()));
    let parsed = array
        .column_by_name("stats_parsed")
        .and_then(|parsed| parsed.as_struct_opt());
    let Some(parsed) = parsed.filter(|_| given.null_count() > 0) else {
        return given;
    };
    let texts = (0..given.len()).map(|row| {
        if given.is_valid(row) {
            Some(given.value(row).to_owned())
        } else {
            statistics_json(parsed, row)
        }
    });
    texts.collect()
}

/// Statistics as columns: the typed ones, or else those parsed from the texts. A value that is not of the column's type is null.
fn typed_stats(array: &StructArray, field: &Field) -> Result<ArrayRef> {
    let texts = texts(array, "stats").unwrap_or_else(|| StringArray::new_null(array.len()));
    let before = array.column_by_name("stats_parsed");
    let before = before
        .map(|parsed| conform(parsed, field.data_type(), true).map_err(bug))
        .transpose()?;
    let there = |row: usize| before.as_ref().is_some_and(|before| before.is_valid(row));
    let values: Vec<Option<&str>> = (0..array.len())
        .map(|row| (!there(row) && texts.is_valid(row)).then(|| texts.value(row).trim()))
        .collect();
    let parsed = column(&values, field.data_type(), Misfit::Null).map_err(DeltaError::invalid)?;
    match &before {
        Some(before) => {
            let mask = BooleanArray::from((0..array.len()).map(there).collect::<Vec<_>>());
            zip(&mask, before, &parsed).map_err(bug)
        }
        None => Ok(parsed),
    }
}

/// The error for columns that do not match their schema: a bug, as both are made here.
fn bug(error: arrow_schema::ArrowError) -> DeltaError {
    DeltaError::invalid(error.to_string())
}
