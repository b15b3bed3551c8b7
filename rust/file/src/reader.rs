//! Reading one data file: the columns asked for, the rows asked for.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{new_empty_array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use esker_store::store::StoreRef;
use futures::future::try_join_all;

use crate::container::Container;
use crate::error::{FileError, Result};
use crate::schema::{Field, Schema};
use crate::v2_0::columns::{assign_columns, ColumnNode};
use crate::v2_0::page::{count, length};
use crate::v2_0::read::read_node;
use crate::version::FileVersion;

/// An open data file.
#[derive(Debug, Clone)]
pub struct FileReader {
    container: Arc<Container>,
}

/// The columns of one file that a read wants, found once for many reads.
#[derive(Debug, Clone)]
pub struct FileProjection {
    schema: SchemaRef,
    nodes: Arc<[ColumnNode]>,
    bytes_per_row: u64,
}

impl FileProjection {
    /// The schema of the batches that reads give.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Bytes that the columns take in the file, by row on average.
    pub fn bytes_per_row(&self) -> u64 {
        self.bytes_per_row
    }
}

impl FileReader {
    /// Opens the file at `path`: one request where its metadata is small.
    pub async fn open(store: StoreRef, path: &str) -> Result<FileReader> {
        let container = Container::open(store, path).await?;
        if container.version() != FileVersion::V2_0 {
            return Err(FileError::unsupported(format!(
                "file {path}: file version {} cannot be read yet; expected 2.0",
                container.version()
            )));
        }
        Ok(FileReader {
            container: Arc::new(container),
        })
    }

    /// The container, with the metadata of columns and pages.
    pub fn container(&self) -> &Container {
        &self.container
    }

    /// Rows in the file.
    pub fn num_rows(&self) -> u64 {
        self.container.num_rows()
    }

    /// The schema that the file itself holds.
    pub fn schema(&self) -> &Schema {
        self.container.schema()
    }

    /// Finds the columns of `fields`. `column_of` maps field ids to columns, as a table's manifest does; without it the file's own order
    /// of fields decides.
    pub fn project(
        &self,
        fields: &[Field],
        column_of: Option<&dyn Fn(i32) -> Option<usize>>,
    ) -> Result<FileProjection> {
        let own = assign_columns(self.container.schema());
        let by_order = |id: i32| own.get(&id).copied();
        let column_of = column_of.unwrap_or(&by_order);
        let nodes = fields
            .iter()
            .map(|f| ColumnNode::new(f, column_of))
            .collect::<Result<Vec<_>>>()?;
        let arrow = fields.iter().map(Field::to_arrow).collect::<Result<Vec<_>>>()?;
        let mut columns = Vec::new();
        for node in &nodes {
            node.for_each_column(&mut |column| columns.push(column));
        }
        let mut bytes = 0_u64;
        for column in columns {
            let meta = self.container.column(column)?;
            let in_pages = meta.pages.iter().flat_map(|p| &p.buffers).map(|b| b.end - b.start);
            bytes = in_pages.fold(bytes, u64::saturating_add);
        }
        Ok(FileProjection {
            schema: Arc::new(ArrowSchema::new(arrow)),
            nodes: nodes.into(),
            bytes_per_row: bytes.checked_div(self.num_rows()).unwrap_or(0),
        })
    }

    /// Reads rows: sorted ranges that do not overlap, counted from the file's first row. One batch holds them all, in order.
    pub async fn read(&self, projection: &FileProjection, rows: &[Range<u64>]) -> Result<RecordBatch> {
        let mut previous = 0;
        for range in rows {
            if range.start < previous || range.end < range.start {
                return Err(FileError::invalid("expected sorted row ranges that do not overlap"));
            }
            previous = range.end;
        }
        if previous > self.num_rows() {
            return Err(FileError::corrupt(
                self.container.path(),
                format!(
                    "expected at least {previous} rows, found {} in the file; the table and the file disagree",
                    self.num_rows()
                ),
            ));
        }
        let rows: Vec<Range<u64>> = rows.iter().filter(|r| !r.is_empty()).cloned().collect();
        let num_rows = length(count(&rows))?;
        let arrays: Vec<ArrayRef> = if rows.is_empty() {
            projection
                .schema
                .fields()
                .iter()
                .map(|f| new_empty_array(f.data_type()))
                .collect()
        } else {
            try_join_all(
                projection
                    .nodes
                    .iter()
                    .map(|node| read_node(&self.container, node, &rows)),
            )
            .await?
        };
        let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
        RecordBatch::try_new_with_options(projection.schema.clone(), arrays, &options)
            .map_err(|e| FileError::corrupt(self.container.path(), e.to_string()))
    }
}
