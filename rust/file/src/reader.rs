//! Reads one data file: the requested columns of the requested rows.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{new_empty_array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use esker_store::store::StoreRef;
use futures::future::try_join_all;

use crate::blob::{locate, BlobLocation, Home};
use crate::cache::{Owner, ReadCache, DEFAULT_CACHE_BYTES};
use crate::container::{Container, FileTail};
use crate::error::{FileError, Result};
use crate::room::Room;
use crate::schema::{BlobKind, BlobView, Field, Schema};
use crate::v0_1::column::Dictionaries;
use crate::v0_1::read::{GroupColumns, GroupFile};
use crate::v0_1::statistics::bounds::ColumnBounds;
use crate::v2_0::columns::{columns_of, ColumnNode};
use crate::v2_0::page::{count, length};
use crate::v2_0::read::read_node;
use crate::v2_1::read::{Decoding, LeafColumns, LeafFile};
use crate::version::FileVersion;

/// An open data file.
#[derive(Debug, Clone)]
pub struct FileReader {
    pub(crate) file: OpenFile,
}

/// An open file, by the layout of its version.
#[derive(Debug, Clone)]
pub(crate) enum OpenFile {
    /// Groups of rows, a page for each column in each.
    V0_1(Arc<GroupFile>),
    /// A column for each node of the schema.
    V2_0(Arc<Container>),
    /// A column for each leaf of the schema, its nesting in levels: 2.1 and 2.2.
    V2_1(Arc<LeafFile>),
}

#[derive(Debug, Clone)]
enum Columns {
    V0_1(GroupColumns),
    V2_0(Arc<[ColumnNode]>),
    V2_1(LeafColumns),
}

/// The projected columns of one file, resolved once for many reads.
#[derive(Debug, Clone)]
pub struct FileProjection {
    schema: SchemaRef,
    columns: Columns,
    bytes_per_row: u64,
}

impl FileProjection {
    /// The schema of the batches that reads return.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The average bytes per row of the columns in the file.
    pub fn bytes_per_row(&self) -> u64 {
        self.bytes_per_row
    }
}

impl FileReader {
    /// Opens the file at `path`: one request where its metadata is small.
    pub async fn open(store: StoreRef, path: &str) -> Result<FileReader> {
        FileReader::open_sized(store, path, None).await
    }

    /// Opens the file at `path`, with its size in bytes if the manifest has it.
    pub async fn open_sized(store: StoreRef, path: &str, size: Option<u64>) -> Result<FileReader> {
        FileReader::open_with(store, path, size, &ReadCache::new(DEFAULT_CACHE_BYTES)).await
    }

    /// The same, keeping what is read of its pages in `cache`.
    pub async fn open_with(
        store: StoreRef,
        path: &str,
        size: Option<u64>,
        cache: &Arc<ReadCache>,
    ) -> Result<FileReader> {
        let tail = FileTail::fetch(store, path, size).await?;
        let file = match tail.version()? {
            FileVersion::V0_1 => OpenFile::V0_1(Arc::new(GroupFile::open(tail).await?)),
            FileVersion::V2_0 => OpenFile::V2_0(Arc::new(Container::open(tail, cache).await?)),
            FileVersion::V2_1 | FileVersion::V2_2 => {
                OpenFile::V2_1(Arc::new(LeafFile::new(Container::open(tail, cache).await?)))
            }
        };
        Ok(FileReader { file })
    }

    /// The same open file, read by way of another handle to its store; `None` for a file of version 0.1, which is opened anew.
    pub fn through(&self, store: &StoreRef) -> Option<FileReader> {
        let file = match &self.file {
            OpenFile::V0_1(_) => return None,
            OpenFile::V2_0(file) => OpenFile::V2_0(Arc::new(file.through(store))),
            OpenFile::V2_1(file) => OpenFile::V2_1(Arc::new(file.through(store))),
        };
        Some(FileReader { file })
    }

    /// What is kept of its pages; nothing of a file of version 0.1.
    pub fn kept(&self) -> Option<&Owner> {
        self.container().map(Container::kept)
    }

    /// About the bytes that the open file holds in memory: its metadata, encoded and decoded.
    pub fn metadata_bytes(&self) -> u64 {
        const LEAST: u64 = 16 * 1024;
        let known = self.container().map_or(0, Container::metadata_bytes);
        known.saturating_add(LEAST)
    }

    /// The container of a 2.x file, with the metadata of columns and pages.
    pub fn container(&self) -> Option<&Container> {
        match &self.file {
            OpenFile::V0_1(_) => None,
            OpenFile::V2_0(file) => Some(file),
            OpenFile::V2_1(file) => Some(file.container()),
        }
    }

    /// The bytes of global buffer `index`: 0 is the file's descriptor.
    pub async fn read_global_buffer(&self, index: usize) -> Result<bytes::Bytes> {
        match self.container() {
            Some(container) => container.read_global_buffer(index).await,
            None => Err(FileError::unsupported(format!(
                "file {}: a file of version 0.1 has no global buffers",
                self.path()
            ))),
        }
    }

    /// Path in its store.
    pub fn path(&self) -> &str {
        match &self.file {
            OpenFile::V0_1(file) => file.path(),
            OpenFile::V2_0(file) => file.path(),
            OpenFile::V2_1(file) => file.container().path(),
        }
    }

    /// The version of the file format.
    pub fn version(&self) -> FileVersion {
        self.container().map_or(FileVersion::V0_1, Container::version)
    }

    /// Rows in the file.
    pub fn num_rows(&self) -> u64 {
        match &self.file {
            OpenFile::V0_1(file) => file.num_rows(),
            OpenFile::V2_0(file) => file.num_rows(),
            OpenFile::V2_1(file) => file.container().num_rows(),
        }
    }

    /// The schema that the file itself holds.
    pub fn schema(&self) -> &Schema {
        match &self.file {
            OpenFile::V0_1(file) => file.schema(),
            OpenFile::V2_0(file) => file.schema(),
            OpenFile::V2_1(file) => file.container().schema(),
        }
    }

    /// Finds the columns of `fields`. `column_of` maps field ids to columns, as a table's manifest does; without it the file's own order
    /// of fields decides. (A 0.1 file finds them by their ids.)
    pub fn project(
        &self,
        fields: &[Field],
        column_of: Option<&dyn Fn(i32) -> Option<usize>>,
    ) -> Result<FileProjection> {
        self.project_with(fields, column_of, &Arc::default())
    }

    /// Like [`FileReader::project`], with the values that a table has for dictionary columns of its 0.1 files.
    pub fn project_with(
        &self,
        fields: &[Field],
        column_of: Option<&dyn Fn(i32) -> Option<usize>>,
        dictionaries: &Arc<Dictionaries>,
    ) -> Result<FileProjection> {
        let arrow = fields.iter().map(Field::to_arrow).collect::<Result<Vec<_>>>()?;
        let (columns, bytes) = match &self.file {
            OpenFile::V0_1(file) => {
                let columns = file.project(fields, dictionaries)?;
                let bytes = file.bytes_of(&columns)?;
                (Columns::V0_1(columns), bytes)
            }
            OpenFile::V2_0(file) => {
                let own = columns_of(file);
                let by_order = |id: i32| own.get(&id).copied();
                let column_of = column_of.unwrap_or(&by_order);
                let nodes = fields.iter().map(|f| ColumnNode::new(f, column_of));
                let nodes = nodes.collect::<Result<Vec<_>>>()?;
                let mut columns = Vec::new();
                for node in &nodes {
                    node.for_each_column(&mut |column| columns.push(column));
                }
                let bytes = file.page_bytes(&columns)?.saturating_add(payload_bytes(file, fields)?);
                (Columns::V2_0(nodes.into()), bytes)
            }
            OpenFile::V2_1(file) => {
                let columns = file.project(fields, column_of)?;
                let bytes = file.container().page_bytes(&columns.columns())?;
                let bytes = bytes.saturating_add(payload_bytes(file.container(), fields)?);
                (Columns::V2_1(columns), bytes)
            }
        };
        Ok(FileProjection {
            schema: Arc::new(ArrowSchema::new(arrow)),
            columns,
            bytes_per_row: bytes.checked_div(self.num_rows()).unwrap_or(0),
        })
    }

    /// The row behind each page of the columns whose values may have any length, for those with several pages; of no column if there are more
    /// than `most` of them. Writers end a page where its values have so many bytes: of long values it has few. None of files before 2.1.
    pub fn page_ends(&self, projection: &FileProjection, most: usize) -> Result<Vec<Vec<u64>>> {
        match (&self.file, &projection.columns) {
            (OpenFile::V2_1(file), Columns::V2_1(columns)) => file.page_ends(columns, most),
            _ => Ok(Vec::new()),
        }
    }

    /// The locations of the blobs that `descriptions` of this file describe, read with [`BlobView::Located`]; `None` for a null.
    pub fn locate_blobs(&self, kind: BlobKind, descriptions: &ArrayRef) -> Result<Vec<Option<BlobLocation>>> {
        let home = Home {
            path: self.path(),
            size: self.container().map_or(0, Container::size),
        };
        locate(home, kind, descriptions)
    }

    /// The first row of each group of a 0.1 file, and the row after the last; `None` for other versions.
    pub fn group_offsets(&self) -> Option<&[u64]> {
        match &self.file {
            OpenFile::V0_1(file) => Some(file.page_table().group_offsets()),
            _ => None,
        }
    }

    /// The values of the dictionary columns of a 0.1 file, as the file itself holds them.
    pub async fn dictionaries(&self) -> Result<Dictionaries> {
        match &self.file {
            OpenFile::V0_1(file) => Ok(file.own_dictionaries().await?.clone()),
            _ => Ok(Dictionaries::new()),
        }
    }

    /// The statistics of a 0.1 file as its writer noted them, with a row for each group: of each field that has any a struct of
    /// `null_count`, `min_value` and `max_value`, named by the field's id. `None` where there are none.
    pub async fn statistics(&self) -> Result<Option<RecordBatch>> {
        match &self.file {
            OpenFile::V0_1(file) => file.statistics().await,
            _ => Ok(None),
        }
    }

    /// Bounds of a 0.1 file's columns by their path, a value for each group: derived from its statistics, for the values as they are read.
    pub async fn group_bounds(&self, projection: &FileProjection) -> Result<BTreeMap<Vec<String>, ColumnBounds>> {
        match (&self.file, &projection.columns) {
            (OpenFile::V0_1(file), Columns::V0_1(columns)) => file.bounds(columns).await,
            _ => Ok(BTreeMap::new()),
        }
    }

    /// Reads rows: sorted ranges that do not overlap, counted from the file's first row. One batch holds them all, in order.
    pub async fn read(&self, projection: &FileProjection, rows: &[Range<u64>]) -> Result<RecordBatch> {
        self.read_by(projection, rows, Decoding::default()).await
    }

    /// The same, where the caller says where to decode.
    pub async fn read_by(
        &self,
        projection: &FileProjection,
        rows: &[Range<u64>],
        decoding: Decoding,
    ) -> Result<RecordBatch> {
        self.read_within(projection, rows, decoding, &Arc::new(Room::unbounded()))
            .await
    }

    /// The same, which fails with [`FileError::TooLarge`] where the values of a 2.1 or 2.2 file take more memory than there is room, once
    /// that is known: before much more than that is there.
    pub async fn read_within(
        &self,
        projection: &FileProjection,
        rows: &[Range<u64>],
        decoding: Decoding,
        room: &Arc<Room>,
    ) -> Result<RecordBatch> {
        let rows = self.checked(rows)?;
        let num_rows = length(count(&rows))?;
        let arrays: Vec<ArrayRef> = if rows.is_empty() {
            projection
                .schema
                .fields()
                .iter()
                .map(|f| new_empty_array(f.data_type()))
                .collect()
        } else {
            match (&self.file, &projection.columns) {
                (OpenFile::V0_1(file), Columns::V0_1(columns)) => file.read(columns, &rows).await?,
                (OpenFile::V2_0(file), Columns::V2_0(nodes)) => {
                    try_join_all(nodes.iter().map(|node| read_node(file, node, &rows))).await?
                }
                (OpenFile::V2_1(file), Columns::V2_1(columns)) => file.read(columns, &rows, decoding, room).await?,
                _ => {
                    return Err(FileError::invalid(
                        "expected a projection of this file, found one of a file of another version",
                    ))
                }
            }
        };
        let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
        RecordBatch::try_new_with_options(projection.schema.clone(), arrays, &options)
            .map_err(|e| FileError::corrupt(self.path(), e.to_string()))
    }

    /// Reads rows of the only column of a projection as keys and values, an array of Arrow's dictionary type, where all pages that they lie
    /// in have dictionaries that are small beside the rows; as plain values otherwise. `None` for columns that are never read like that.
    /// Takes no more memory than there is room, as [`Self::read_within`].
    pub async fn read_keyed(
        &self,
        projection: &FileProjection,
        rows: &[Range<u64>],
        room: &Arc<Room>,
    ) -> Result<Option<ArrayRef>> {
        let (OpenFile::V2_1(file), Columns::V2_1(columns)) = (&self.file, &projection.columns) else {
            return Ok(None);
        };
        let rows = self.checked(rows)?;
        if rows.is_empty() || !columns.may_be_keyed() {
            return Ok(None);
        }
        Ok(Some(file.read_keyed(columns, &rows, room).await?))
    }

    /// The rows to read, without empty ranges.
    fn checked(&self, rows: &[Range<u64>]) -> Result<Vec<Range<u64>>> {
        let mut previous = 0;
        for range in rows {
            if range.start < previous || range.end < range.start {
                return Err(FileError::invalid("expected sorted row ranges that do not overlap"));
            }
            previous = range.end;
        }
        if previous > self.num_rows() {
            return Err(FileError::corrupt(
                self.path(),
                format!(
                    "expected at least {previous} rows, found {} in the file; the table and the file disagree",
                    self.num_rows()
                ),
            ));
        }
        Ok(rows.iter().filter(|r| !r.is_empty()).cloned().collect())
    }
}

/// An estimate of the bytes of the blobs of `fields` outside of the pages; 0 if only their descriptions are read.
fn payload_bytes(file: &Container, fields: &[Field]) -> Result<u64> {
    fn wants(field: &Field, kind: BlobKind) -> bool {
        match (field.blob_kind(), field.blob_view) {
            (None, _) => field.children.iter().any(|child| wants(child, kind)),
            (Some(BlobKind::V1), None) => kind == BlobKind::V1,
            (Some(found), view) => found == kind && view == Some(BlobView::Bytes),
        }
    }
    let wanted = |kind| fields.iter().any(|field| wants(field, kind));
    // v2 blobs may lie in other files, which only their descriptions tell.
    if !wanted(BlobKind::V1) {
        return Ok(0);
    }
    let columns: Vec<usize> = (0..file.num_columns()).collect();
    Ok(file.size().saturating_sub(file.page_bytes(&columns)?))
}
