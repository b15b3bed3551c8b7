//! File pruning: which files may hold rows that a filter keeps, by partition values and then by statistics.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{new_null_array, Array, ArrayRef, UInt32Array};
use arrow_schema::DataType;
use arrow_select::take::take;
use esker_expr::{ColumnRange, ColumnRanges, Predicate};
use esker_store::StoreRef;
use futures::stream::{self, StreamExt, TryStreamExt};
use hashbrown::HashMap;

use crate::chunk::{ChunkView, FileChunk};
use crate::error::{DeltaError, Result};
use crate::partition::typed;
use crate::scalars::{widened, Bound};
use crate::schema::{DeltaField, DeltaSchema, DeltaType};
use crate::snapshot::Snapshot;
use crate::statistics::{of_chunk, ChunkStatistics, WantedColumn};

/// Chunks whose statistics are decoded concurrently.
const PARALLEL: usize = 4;

/// A selection of a snapshot's files: the row indices for each of its chunks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The ascending rows of each chunk.
    pub rows: Vec<Vec<u32>>,
}

impl Selection {
    /// How many files.
    pub fn len(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Snapshot {
    /// All files.
    pub fn all(&self) -> Selection {
        let rows = self
            .views
            .iter()
            .map(|view| view.rows().filter_map(|row| u32::try_from(row).ok()).collect());
        Selection { rows: rows.collect() }
    }

    /// The files that may hold rows for which the filter is true. Statistics are read only if it refers to a column that is no partition
    /// column.
    pub async fn select(&self, store: &StoreRef, filter: &Predicate) -> Result<Selection> {
        if filter.is_never() {
            return Ok(Selection {
                rows: vec![Vec::new(); self.views.len()],
            });
        }
        let mut partitions = Vec::new();
        let mut wanted = Vec::new();
        for name in filter.columns() {
            let Some(field) = self.schema.field(name) else { continue };
            if self.schema.partition_columns.contains(name) {
                partitions.push(field);
            } else {
                wanted.extend(wanted_columns(field, &self.schema));
            }
        }
        let rows = self
            .views
            .iter()
            .map(|view| self.by_partition(view, filter, &partitions));
        let mut selection = Selection {
            rows: rows.collect::<Result<_>>()?,
        };
        if wanted.is_empty() {
            return Ok(selection);
        }
        let wanted = Arc::new(wanted);
        let views = self.views.iter().zip(&selection.rows).enumerate();
        let tasks = views.filter(|(_, (_, rows))| !rows.is_empty()).map(|(at, (view, _))| {
            let (store, chunk, wanted, root) = (store.clone(), view.chunk.clone(), wanted.clone(), self.root.clone());
            async move {
                let task = tokio::spawn(async move { of_chunk(&store, &chunk, &wanted, &root).await });
                let found = task
                    .await
                    .unwrap_or_else(|error| Err(DeltaError::invalid(error.to_string())));
                Ok::<_, DeltaError>((at, found?))
            }
        });
        let found: Vec<(usize, ChunkStatistics)> = stream::iter(tasks).buffered(PARALLEL).try_collect().await?;
        for (at, statistics) in found {
            if let (Some(view), Some(rows)) = (self.views.get(at), selection.rows.get_mut(at)) {
                *rows = self.by_statistics(&statistics, view, filter, &partitions, &wanted, std::mem::take(rows))?;
            }
        }
        Ok(selection)
    }

    /// Prunes by partition values, with one check per distinct combination.
    fn by_partition(&self, view: &ChunkView, filter: &Predicate, partitions: &[&DeltaField]) -> Result<Vec<u32>> {
        let chunk = &view.chunk;
        let alive = view.rows().filter_map(|row| u32::try_from(row).ok());
        if partitions.is_empty() {
            return Ok(alive.collect());
        }
        let columns: Vec<Option<&[u32]>> = partitions
            .iter()
            .map(|field| {
                let name = field.physical_name(self.schema.mapping);
                let column = chunk.partitions.iter().find(|column| column.name == name);
                column.map(|column| column.codes.as_slice())
            })
            .collect();
        let mut combinations: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut firsts = Vec::new();
        let mut of_row = Vec::new();
        let rows: Vec<u32> = alive.collect();
        let mut key = Vec::with_capacity(columns.len());
        for row in &rows {
            key.clear();
            key.extend(
                columns
                    .iter()
                    .map(|codes| codes.and_then(|codes| codes.get(*row as usize).copied()).unwrap_or(0)),
            );
            let at = match combinations.get(&key) {
                Some(at) => *at,
                None => {
                    let at = u32::try_from(firsts.len()).unwrap_or(u32::MAX);
                    combinations.insert(key.clone(), at);
                    firsts.push(*row);
                    at
                }
            };
            of_row.push(at);
        }
        let mut ranges = ColumnRanges::new();
        for field in partitions {
            let range = self.partition_range(chunk, field, &firsts, &vec![1; firsts.len()])?;
            ranges.insert(vec![field.name.clone()], range);
        }
        let keep = filter.prune(&ranges, &vec![1; firsts.len()]);
        let kept = rows
            .iter()
            .zip(of_row)
            .filter(|(_, at)| keep.get(*at as usize).copied().unwrap_or(true));
        Ok(kept.map(|(row, _)| *row).collect())
    }

    fn by_statistics(
        &self,
        statistics: &ChunkStatistics,
        view: &ChunkView,
        filter: &Predicate,
        partitions: &[&DeltaField],
        wanted: &[WantedColumn],
        rows: Vec<u32>,
    ) -> Result<Vec<u32>> {
        let counts: Vec<u64> = rows
            .iter()
            .map(|row| {
                statistics
                    .rows
                    .get(*row as usize)
                    .copied()
                    .flatten()
                    // Writers that do not count say 0.
                    .filter(|count| *count > 0)
                    .unwrap_or(u64::MAX)
            })
            .collect();
        let whole = rows.len() == view.chunk.len();
        let indices = UInt32Array::from(rows.clone());
        let chosen = |array: &ArrayRef| -> Result<ArrayRef> {
            if whole {
                return Ok(array.clone());
            }
            take(array, &indices, None).map_err(|error| DeltaError::invalid(error.to_string()))
        };
        let mut ranges = ColumnRanges::new();
        for (column, range) in wanted.iter().zip(&statistics.columns) {
            let nulls = rows
                .iter()
                .map(|row| range.null_count.get(*row as usize).copied().flatten());
            // Old writers had bounds of booleans that are none.
            let bound = |array: &ArrayRef| match array.data_type() {
                DataType::Boolean => Ok(new_null_array(&DataType::Boolean, rows.len())),
                _ => chosen(array),
            };
            let range = ColumnRange {
                min: widened(&bound(&range.min)?, Bound::Min),
                max: widened(&bound(&range.max)?, Bound::Max),
                null_count: nulls.collect(),
            };
            ranges.insert(column.logical.clone(), range);
        }
        for field in partitions {
            let range = self.partition_range(&view.chunk, field, &rows, &counts)?;
            ranges.insert(vec![field.name.clone()], range);
        }
        let keep = filter.prune(&ranges, &counts);
        Ok(rows
            .into_iter()
            .zip(keep)
            .filter(|(_, keep)| *keep)
            .map(|(row, _)| row)
            .collect())
    }

    /// The values of a partition column for some files, as bounds (min = max).
    fn partition_range(
        &self,
        chunk: &FileChunk,
        field: &DeltaField,
        rows: &[u32],
        counts: &[u64],
    ) -> Result<ColumnRange> {
        let values = self.partition_values(chunk, field, rows)?;
        let nulls = counts
            .iter()
            .enumerate()
            .map(|(at, count)| Some(if values.is_null(at) { *count } else { 0 }));
        // NaN is no bound: such a file is unbounded.
        let bounds = if values.data_type().is_floating() {
            without_nan(&values)
        } else {
            values.clone()
        };
        Ok(ColumnRange {
            min: bounds.clone(),
            max: bounds,
            null_count: nulls.collect(),
        })
    }

    /// The values of a partition column for some files of a chunk, typed.
    pub fn partition_values(&self, chunk: &FileChunk, field: &DeltaField, rows: &[u32]) -> Result<ArrayRef> {
        let DeltaType::Primitive(data_type) = &field.data_type else {
            return Err(DeltaError::unsupported(format!(
                "partition column {} is of a nested type",
                field.name
            )));
        };
        let name = field.physical_name(self.schema.mapping);
        let Some(column) = chunk.partitions.iter().find(|column| column.name == name) else {
            return Ok(arrow_array::new_null_array(data_type, rows.len()));
        };
        // Only the values of these files are parsed, so that an invalid value of another file is no error.
        let mut dense: BTreeMap<u32, u32> = BTreeMap::new();
        let mut texts = Vec::new();
        let codes: Vec<u32> = rows
            .iter()
            .map(|row| {
                let code = column.codes.get(*row as usize).copied().unwrap_or(0);
                *dense.entry(code).or_insert_with(|| {
                    texts.push(column.values.get(code as usize).and_then(|value| value.as_deref()));
                    u32::try_from(texts.len() - 1).unwrap_or(u32::MAX)
                })
            })
            .collect();
        let values = typed(&texts, data_type, &field.name, self.zone).map_err(|error| {
            let is_bad = |text: &Option<&str>| typed(&[*text], data_type, &field.name, self.zone).is_err();
            let code = texts.iter().position(is_bad).and_then(|at| u32::try_from(at).ok());
            let row = codes
                .iter()
                .position(|found| Some(*found) == code)
                .and_then(|at| rows.get(at));
            match row {
                Some(row) => chunk.blame(*row as usize, &error.to_string()),
                None => error,
            }
        })?;
        take(&values, &UInt32Array::from(codes), None).map_err(|error| DeltaError::invalid(error.to_string()))
    }
}

fn without_nan(values: &ArrayRef) -> ArrayRef {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float32Type, Float64Type};
    use arrow_array::{Float32Array, Float64Array};
    match values.data_type() {
        DataType::Float32 => {
            let values = values.as_primitive::<Float32Type>().iter();
            Arc::new(
                values
                    .map(|value| value.filter(|v| !v.is_nan()))
                    .collect::<Float32Array>(),
            )
        }
        DataType::Float64 => {
            let values = values.as_primitive::<Float64Type>().iter();
            Arc::new(
                values
                    .map(|value| value.filter(|v| !v.is_nan()))
                    .collect::<Float64Array>(),
            )
        }
        _ => values.clone(),
    }
}

/// The leaf columns below a field.
fn wanted_columns(field: &DeltaField, schema: &DeltaSchema) -> Vec<WantedColumn> {
    let mut wanted = counted_columns(field, schema);
    wanted.retain(|column| !column.is_nested);
    wanted
}

/// The columns below a field that statistics may count the nulls of: leaves, and lists and maps as wholes, which have no bounds.
pub(crate) fn counted_columns(field: &DeltaField, schema: &DeltaSchema) -> Vec<WantedColumn> {
    let mut wanted = Vec::new();
    want(field, schema, &mut Vec::new(), &mut Vec::new(), &mut wanted);
    wanted
}

fn want(
    field: &DeltaField,
    schema: &DeltaSchema,
    logical: &mut Vec<String>,
    physical: &mut Vec<String>,
    wanted: &mut Vec<WantedColumn>,
) {
    logical.push(field.name.clone());
    physical.push(field.physical_name(schema.mapping).to_owned());
    match &field.data_type {
        DeltaType::Primitive(data_type) => wanted.push(WantedColumn {
            logical: logical.clone(),
            physical: physical.clone(),
            data_type: data_type.clone(),
            was_float: field.was_float(),
            is_nested: false,
        }),
        DeltaType::Struct(fields) => {
            for inner in fields {
                want(inner, schema, logical, physical, wanted);
            }
        }
        DeltaType::Array(..) | DeltaType::Map(..) => wanted.push(WantedColumn {
            logical: logical.clone(),
            physical: physical.clone(),
            data_type: DataType::Null,
            was_float: false,
            is_nested: true,
        }),
        DeltaType::Unread(_) => {}
    }
    logical.pop();
    physical.pop();
}
