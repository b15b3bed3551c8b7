//! Collects the file actions of commits: the common fields as columns, the other fields as raw JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::{Array, ArrayRef, StringArray, StructArray};
use arrow_schema::{DataType, Field, Fields};

use super::action_line::{FileAction, FileKind, Kind};
use super::action_types::{merged_shown, shown_by};
use super::json_columns::{column, given, map_array, Lengths, Misfit};
use crate::actions::{DeletionVectorDescriptor, PartitionValues};
use crate::error::{DeltaError, Result};
use crate::statistics::statistics_text;

/// The most rows in one piece of a row group.
pub(crate) const PIECE_ROWS: usize = 8 << 10;
/// The most bytes in one piece: Arrow's string offsets have 31 bits.
pub(crate) const PIECE_BYTES: usize = 64 << 20;

/// File actions of one kind.
pub(crate) struct FileRows {
    kind: FileKind,
    /// The commit that they are from, for messages.
    origin: String,
    bytes: usize,
    paths: StringBuilder,
    sizes: Int64Builder,
    times: Int64Builder,
    stats: StringBuilder,
    partitions: PartitionRows,
    /// The other fields by name: rows and their JSON.
    rest: BTreeMap<String, Vec<(usize, Box<str>)>>,
}

/// Partition values, one map per row.
#[derive(Default)]
struct PartitionRows {
    keys: StringBuilder,
    values: StringBuilder,
    lengths: Lengths,
}

impl FileRows {
    pub(crate) fn new(kind: FileKind, origin: &str) -> Self {
        Self {
            kind,
            origin: origin.to_owned(),
            bytes: 0,
            paths: StringBuilder::new(),
            sizes: Int64Builder::new(),
            times: Int64Builder::new(),
            stats: StringBuilder::new(),
            partitions: PartitionRows::default(),
            rest: BTreeMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        use arrow_array::builder::ArrayBuilder;
        self.sizes.len()
    }

    /// Whether the piece is full, so that the next rows go into another one.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= PIECE_ROWS || self.bytes >= PIECE_BYTES
    }

    /// Adds an action from a line of so many bytes.
    pub(crate) fn push<K: Kind>(&mut self, action: FileAction<'_, K>, line: usize) {
        let row = self.len();
        self.bytes = self.bytes.saturating_add(line);
        self.paths.append_value(&action.path.0);
        self.sizes.append_option(action.size);
        self.times.append_option(action.time);
        let stats = action.stats.filter(|_| self.kind == FileKind::Add);
        self.stats.append_option(stats.and_then(statistics_text));
        self.partitions.push(action.partition_values.as_ref());
        for (name, value) in action.rest {
            if let Some(value) = given(value.get()) {
                match self.rest.get_mut(name.0.as_ref()) {
                    Some(values) => values.push((row, value.into())),
                    None => {
                        self.rest.insert(name.0.into_owned(), vec![(row, value.into())]);
                    }
                }
            }
        }
    }

    /// The inferred types of the other fields.
    pub(crate) fn shown(&self) -> Result<Vec<(String, DataType)>> {
        let mut found = Vec::with_capacity(self.rest.len());
        for (name, values) in &self.rest {
            let mut data_type = DataType::Null;
            for (_, value) in values {
                let raw = serde_json::from_str(value).map_err(|error| self.fault(name, &error.to_string()))?;
                let shown = shown_by(raw).ok_or_else(|| self.fault(name, "a value that has no type"))?;
                data_type = merged_shown(&data_type, &shown).ok_or_else(|| {
                    DeltaError::unsupported(format!(
                        "no checkpoint was written: field '{name}' of {} has values of different types ({data_type} and {shown}), and a \
                         checkpoint must not drop it",
                        self.kind.name()
                    ))
                })?;
            }
            found.push((name.clone(), data_type));
        }
        Ok(found)
    }

    fn fault(&self, field: &str, message: &str) -> DeltaError {
        DeltaError::corrupt(&self.origin, format!("{}.{field}: {message}", self.kind.name()))
    }

    /// The paths of all rows.
    pub(crate) fn paths(&self) -> StringArray {
        self.paths.finish_cloned()
    }

    /// The times of all rows, 0 if there is none.
    pub(crate) fn times(&self) -> &[i64] {
        self.times.values_slice()
    }

    /// The rows as columns of these types, without derived fields.
    pub(crate) fn to_array(&self, fields: &Fields) -> Result<StructArray> {
        let rows = self.len();
        let mut columns = Vec::with_capacity(fields.len());
        let mut kept = Vec::with_capacity(fields.len());
        for field in fields {
            let array: ArrayRef = match field.name().as_str() {
                "path" => Arc::new(self.paths.finish_cloned()),
                "size" => Arc::new(self.sizes.finish_cloned()),
                "stats" => Arc::new(self.stats.finish_cloned()),
                name if name == self.kind.time_field() => Arc::new(self.times.finish_cloned()),
                "partitionValues" => self
                    .partitions
                    .to_array(field.data_type())
                    .map_err(|e| self.fault("partitionValues", &e))?,
                name => match self.rest.get(name) {
                    None => continue,
                    Some(found) => {
                        let mut values = vec![None; rows];
                        for (row, value) in found {
                            if let Some(slot) = values.get_mut(*row) {
                                *slot = Some(value.as_ref());
                            }
                        }
                        column(&values, field.data_type(), Misfit::Error).map_err(|error| self.fault(name, &error))?
                    }
                },
            };
            kept.push(Arc::new(Field::new(field.name(), array.data_type().clone(), true)));
            columns.push(array);
        }
        // Statistics are needed even if only their typed form is written.
        if self.kind == FileKind::Add && !kept.iter().any(|field| field.name() == "stats") {
            kept.push(Arc::new(Field::new("stats", DataType::Utf8, true)));
            columns.push(Arc::new(self.stats.finish_cloned()));
        }
        StructArray::try_new_with_length(kept.into(), columns, None, rows)
            .map_err(|error| self.fault("", &error.to_string()))
    }
}

impl PartitionRows {
    fn push(&mut self, values: Option<&PartitionValues<'_>>) {
        self.lengths.push(values.map(|values| values.0.len()));
        for (name, value) in values.iter().flat_map(|values| &values.0) {
            self.keys.append_value(&name.0);
            self.values.append_option(value.as_ref().map(|value| value.0.as_ref()));
        }
    }

    fn to_array(&self, data_type: &DataType) -> Result<ArrayRef, String> {
        let DataType::Map(entries, sorted) = data_type else {
            return Err(format!("expected a map, found {data_type}"));
        };
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.keys.finish_cloned()),
            Arc::new(self.values.finish_cloned()),
        ];
        map_array(entries, *sorted, columns, self.lengths.clone())
    }
}

/// The deletion vector among the other fields of an action.
pub(crate) fn vector_of<K>(action: &FileAction<'_, K>) -> serde_json::Result<Option<DeletionVectorDescriptor>> {
    let found = action.rest.iter().find(|(name, _)| name.0 == "deletionVector");
    found.map_or(Ok(None), |(_, raw)| serde_json::from_str(raw.get()))
}
