//! The files of a snapshot as Arrow tables: what query planning needs, and statistics.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{
    new_empty_array, Array, ArrayRef, Int64Array, RecordBatch, StructArray, TimestampMicrosecondArray, UInt32Array,
};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use arrow_select::concat::concat;
use arrow_select::take::take;
use esker_store::StoreRef;

use crate::error::{DeltaError, Result};
use crate::prune::{counted_columns, Selection};
use crate::schema::DeltaType;
use crate::snapshot::Snapshot;
use crate::statistics::of_chunk;

const MILLISECOND: i64 = 1000;

impl Snapshot {
    /// The canonical paths of files.
    pub fn paths<'a>(&'a self, selection: &'a Selection) -> impl Iterator<Item = String> + 'a {
        let views = self.views.iter().zip(&selection.rows);
        views.flat_map(|(view, rows)| rows.iter().map(|row| view.chunk.path(*row as usize)))
    }

    /// The paths of files as spelled in the log.
    pub fn log_paths(&self, selection: &Selection) -> Vec<String> {
        let views = self.views.iter().zip(&selection.rows);
        let paths = views.flat_map(|(view, rows)| rows.iter().map(|row| view.chunk.spelled_path(*row as usize)));
        paths.collect()
    }

    /// One row a file: `path`, `size_bytes`, `modification_time` (milliseconds since the epoch), `partition` (typed values by logical name),
    /// `deletion_vector` (as in the log, null if no row is deleted).
    pub fn describe(&self, selection: &Selection) -> Result<RecordBatch> {
        let mut paths = StringBuilder::new();
        let mut sizes = Int64Builder::new();
        let mut times = Int64Builder::new();
        let mut vectors = Vectors::default();
        for (view, rows) in self.views.iter().zip(&selection.rows) {
            for row in rows {
                let row = *row as usize;
                paths.append_value(view.chunk.path(row));
                sizes.append_value(view.chunk.size(row));
                times.append_value(view.chunk.modification_time(row));
                vectors.push(view.chunk.deletion_vector(row));
            }
        }
        let mut fields = Vec::new();
        let mut columns = Vec::new();
        for field in self.schema.partition_fields() {
            let DeltaType::Primitive(data_type) = &field.data_type else {
                continue;
            };
            let parts = self.views.iter().zip(&selection.rows);
            let parts = parts
                .map(|(view, rows)| self.partition_values(&view.chunk, field, rows))
                .collect::<Result<Vec<_>>>()?;
            columns.push(joined(&parts, data_type)?);
            fields.push(Field::new(&field.name, data_type.clone(), true));
        }
        let partition =
            StructArray::try_new_with_length(Fields::from(fields), columns, None, selection.len()).map_err(bug)?;
        let vectors = vectors.finish()?;
        let schema = Schema::new(vec![
            Field::new("path", DataType::Utf8, false),
            Field::new("size_bytes", DataType::Int64, false),
            Field::new("modification_time", DataType::Int64, false),
            Field::new("partition", partition.data_type().clone(), false),
            Field::new("deletion_vector", vectors.data_type().clone(), true),
        ]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(paths.finish()),
            Arc::new(sizes.finish()),
            Arc::new(times.finish()),
            Arc::new(partition),
            Arc::new(vectors),
        ];
        RecordBatch::try_new(Arc::new(schema), columns).map_err(bug)
    }

    /// The statistics of files: `num_records`, then for each leaf column the three columns `null_count`, `min` and `max`, in the order of
    /// the returned paths; lists and maps have bounds of the type of nulls. Without `bounds`, only `num_records`.
    pub async fn statistics(
        &self,
        store: &StoreRef,
        selection: &Selection,
        bounds: bool,
    ) -> Result<(Vec<Vec<String>>, RecordBatch)> {
        let mut wanted = Vec::new();
        for field in &self.schema.fields {
            if bounds && !self.schema.partition_columns.contains(&field.name) {
                wanted.extend(counted_columns(field, &self.schema));
            }
        }
        let mut records = Int64Builder::new();
        let mut parts: Vec<[Vec<ArrayRef>; 3]> = wanted.iter().map(|_| [Vec::new(), Vec::new(), Vec::new()]).collect();
        for (view, rows) in self.views.iter().zip(&selection.rows) {
            let found = of_chunk(store, &view.chunk, &wanted, &self.root).await?;
            let indices = UInt32Array::from(rows.clone());
            for row in rows {
                let count = found.rows.get(*row as usize).copied().flatten();
                records.append_option(count.and_then(|count| i64::try_from(count).ok()));
            }
            for ([nulls, min, max], range) in parts.iter_mut().zip(&found.columns) {
                let counts = rows
                    .iter()
                    .map(|row| range.null_count.get(*row as usize).copied().flatten());
                nulls.push(Arc::new(
                    counts.map(|count| i64::try_from(count?).ok()).collect::<Int64Array>(),
                ));
                min.push(take(&range.min, &indices, None).map_err(bug)?);
                max.push(as_written(&take(&range.max, &indices, None).map_err(bug)?));
            }
        }
        let mut fields = vec![Field::new("num_records", DataType::Int64, true)];
        let mut columns: Vec<ArrayRef> = vec![Arc::new(records.finish())];
        for (column, [nulls, min, max]) in wanted.iter().zip(parts) {
            for (name, data_type, parts) in [
                ("null_count", &DataType::Int64, nulls),
                ("min", &column.data_type, min),
                ("max", &column.data_type, max),
            ] {
                fields.push(Field::new(name, data_type.clone(), true));
                columns.push(joined(&parts, data_type)?);
            }
        }
        let paths = wanted.into_iter().map(|column| column.logical).collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(bug)?;
        Ok((paths, batch))
    }
}

/// A maximum as written in the log: undoes the widening of timestamps, which is for pruning.
fn as_written(max: &ArrayRef) -> ArrayRef {
    match max.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let times = max.as_primitive::<TimestampMicrosecondType>().iter();
            let times = times.map(|time| time.map(|time| time.saturating_sub(MILLISECOND)));
            Arc::new(
                times
                    .collect::<TimestampMicrosecondArray>()
                    .with_timezone_opt(zone.clone()),
            )
        }
        _ => max.clone(),
    }
}

fn joined(parts: &[ArrayRef], data_type: &DataType) -> Result<ArrayRef> {
    if parts.is_empty() {
        return Ok(new_empty_array(data_type));
    }
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    concat(&parts).map_err(bug)
}

/// The error for arrays that do not match their schema: a bug, as both are made here.
fn bug(error: arrow_schema::ArrowError) -> DeltaError {
    DeltaError::invalid(error.to_string())
}

/// The builder of the struct column of deletion vector descriptors.
#[derive(Default)]
struct Vectors {
    storage: StringBuilder,
    place: StringBuilder,
    offset: Int64Builder,
    size: Int64Builder,
    cardinality: Int64Builder,
    valid: Vec<bool>,
}

impl Vectors {
    fn push(&mut self, vector: Option<&crate::actions::DeletionVectorDescriptor>) {
        self.storage.append_option(vector.map(|v| v.storage_type.as_str()));
        self.place.append_option(vector.map(|v| v.path_or_inline_dv.as_str()));
        self.offset.append_option(vector.and_then(|v| v.offset));
        self.size.append_option(vector.map(|v| v.size_in_bytes));
        self.cardinality.append_option(vector.map(|v| v.cardinality));
        self.valid.push(vector.is_some());
    }

    fn finish(mut self) -> Result<StructArray> {
        let fields = Fields::from(vec![
            Field::new("storageType", DataType::Utf8, true),
            Field::new("pathOrInlineDv", DataType::Utf8, true),
            Field::new("offset", DataType::Int64, true),
            Field::new("sizeInBytes", DataType::Int64, true),
            Field::new("cardinality", DataType::Int64, true),
        ]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.storage.finish()),
            Arc::new(self.place.finish()),
            Arc::new(self.offset.finish()),
            Arc::new(self.size.finish()),
            Arc::new(self.cardinality.finish()),
        ];
        StructArray::try_new(fields, columns, Some(self.valid.into())).map_err(bug)
    }
}
