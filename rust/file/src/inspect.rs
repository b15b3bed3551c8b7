//! Describes the layout of a file: columns, pages, encodings, offsets and sizes.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;

use crate::container::{BufferRange, Container, PageEncoding};
use crate::error::{FileError, Result};
use crate::reader::{FileReader, OpenFile};
use crate::room::Room;
use crate::schema::{BlobView, Field};
use crate::v0_1;
use crate::v2_0::blob;
use crate::v2_0::columns::{columns_of, ColumnNode};
use crate::v2_0::decode::describe;
use crate::v2_0::read::read_leaf;
use crate::v2_0::write::array_bytes;
use crate::v2_1;
use crate::v2_1::read::{Decoding, LeafFile};
use crate::version::FileVersion;

/// One page of a column.
#[derive(Debug, Clone)]
pub struct PageLayout {
    /// Values of the column before this page.
    pub first_value: u64,
    /// Values in this page.
    pub num_values: u64,
    /// How they are encoded.
    pub encoding: String,
    /// Where the page's buffers lie in the file.
    pub buffers: Vec<BufferRange>,
}

/// One column of a file.
#[derive(Debug, Clone)]
pub struct ColumnLayout {
    /// Its number in the file.
    pub index: usize,
    /// The field that it holds, as a dotted path; list items are named `item` or as their field is.
    pub field: String,
    /// The field's type as the format spells it.
    pub logical_type: String,
    /// The pages in order.
    pub pages: Vec<PageLayout>,
    /// Where the buffers lie that belong to the column as a whole.
    pub buffers: Vec<BufferRange>,
    /// Bytes in the file.
    pub bytes: u64,
}

/// One file.
#[derive(Debug, Clone)]
pub struct FileLayout {
    /// Path in its store.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// The version of the file format.
    pub version: String,
    /// Rows in the file.
    pub num_rows: u64,
    /// The columns in order.
    pub columns: Vec<ColumnLayout>,
    /// Bytes before the metadata of the columns: pages, blob payloads and padding.
    pub data_bytes: u64,
    /// Bytes of the metadata of all columns and their table.
    pub column_metadata_bytes: u64,
    /// Bytes of all global buffers.
    pub global_buffer_bytes: u64,
    /// Where the global buffers lie; 0 is the file's descriptor.
    pub global_buffers: Vec<BufferRange>,
}

/// Describes an open file. Nothing but its metadata is read.
pub fn inspect(reader: &FileReader) -> Result<FileLayout> {
    if let OpenFile::V0_1(file) = &reader.file {
        return v0_1::describe::inspect(file);
    }
    let file = container_of(reader)?;
    let names = field_names(file);
    let columns = (0..file.num_columns())
        .map(|index| {
            let meta = file.column(index)?;
            let pages: Vec<PageLayout> = meta
                .pages
                .iter()
                .map(|page| PageLayout {
                    first_value: page.first_value,
                    num_values: page.num_values,
                    encoding: match &page.encoding {
                        PageEncoding::V2_0(encoding) => describe(Some(encoding)),
                        PageEncoding::V2_1(layout) => v2_1::describe::describe(layout),
                        PageEncoding::Other(name, _) => name.clone(),
                    },
                    buffers: page.buffers.clone(),
                })
                .collect();
            let bytes = pages
                .iter()
                .flat_map(|p| &p.buffers)
                .chain(&meta.buffers)
                .map(|b| b.end - b.start)
                .sum();
            let (field, logical_type) = names.get(&index).cloned().unwrap_or_default();
            Ok(ColumnLayout {
                index,
                field,
                logical_type,
                pages,
                buffers: meta.buffers.clone(),
                bytes,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let metadata = file.column_metadata();
    Ok(FileLayout {
        path: file.path().to_string(),
        size: file.size(),
        version: file.version().to_string(),
        num_rows: file.num_rows(),
        columns,
        data_bytes: metadata.start.saturating_sub(file.global_bytes()),
        column_metadata_bytes: metadata.end.saturating_sub(metadata.start),
        global_buffer_bytes: file.global_bytes(),
        global_buffers: file.global_buffers().to_vec(),
    })
}

/// The bytes of a column's values without any encoding, to compare with its bytes in the file. Reads the column, a page at a time. `None`
/// for the header of a struct, which holds no values.
pub async fn plain_bytes(reader: &FileReader, column: usize) -> Result<Option<u64>> {
    if let OpenFile::V0_1(file) = &reader.file {
        return v0_1::describe::plain_bytes(file, column);
    }
    let file = container_of(reader)?;
    if let OpenFile::V2_1(file) = &reader.file {
        return plain_leaf_bytes(file, column).await;
    }
    let meta = file.column(column)?;
    let columns = columns_of(file);
    let column_of = |id: i32| columns.get(&id).copied();
    for field in &file.schema().fields {
        let tree = ColumnNode::new(field, &column_of)?;
        let Some(node) = tree.find(column) else { continue };
        let data_type = match node {
            ColumnNode::Leaf { data_type, .. } => data_type,
            ColumnNode::List { .. } => return Ok(Some(meta.num_values.saturating_mul(8))),
            ColumnNode::Struct { .. } => return Ok(None),
            ColumnNode::Blob { .. } => return blob_bytes(file, column, meta.num_values).await.map(Some),
        };
        let mut bytes = 0_u64;
        for page in meta.pages.iter().filter(|page| page.num_values > 0) {
            let values = page.first_value..page.first_value.saturating_add(page.num_values);
            let array = read_leaf(file, column, data_type, std::slice::from_ref(&values)).await?;
            bytes = bytes.saturating_add(array_bytes(&array));
        }
        return Ok(Some(bytes));
    }
    Ok(None)
}

/// The bytes of all blobs of a column, and an end offset for each; only their descriptions are read.
async fn blob_bytes(file: &Container, column: usize, num_values: u64) -> Result<u64> {
    let all = 0..num_values;
    let descriptions = blob::decode::read(file, column, BlobView::Located, std::slice::from_ref(&all)).await?;
    let sizes = descriptions
        .as_struct_opt()
        .and_then(|fields| fields.columns().get(1)?.as_primitive_opt::<UInt64Type>());
    let sizes = sizes.map(|sizes| {
        sizes
            .values()
            .iter()
            .fold(0, |sum: u64, size| sum.saturating_add(*size))
    });
    Ok(sizes.unwrap_or(0).saturating_add(num_values.saturating_mul(8)))
}

/// The same for a column of a 2.1 or 2.2 file.
async fn plain_leaf_bytes(file: &LeafFile, column: usize) -> Result<Option<u64>> {
    let meta = file.container().column(column)?;
    for field in &file.container().schema().fields {
        let columns = file.project(std::slice::from_ref(field), None)?;
        let Some(leaf) = columns.leaf(column) else { continue };
        let mut bytes = 0_u64;
        for page in meta.pages.iter().filter(|page| page.num_values > 0) {
            let row = |value: u64| value.checked_div(leaf.stride).unwrap_or(value);
            let rows = row(page.first_value)..row(page.first_value.saturating_add(page.num_values));
            let leaves = std::slice::from_ref(&leaf);
            for column in file
                .read_leaves(
                    leaves,
                    std::slice::from_ref(&rows),
                    Decoding::SideBySide,
                    &Arc::new(Room::unbounded()),
                )
                .await?
            {
                bytes = bytes.saturating_add(array_bytes(&column.finish()?.array));
            }
        }
        return Ok(Some(bytes));
    }
    Ok(None)
}

pub(crate) fn container_of(reader: &FileReader) -> Result<&Container> {
    reader.container().ok_or_else(|| {
        FileError::unsupported(format!(
            "file {}: expected a file of version 2.0 or later, found 0.1",
            reader.path()
        ))
    })
}

fn field_names(file: &Container) -> BTreeMap<usize, (String, String)> {
    fn visit(field: &Field, prefix: &str, columns: &BTreeMap<i32, usize>, out: &mut BTreeMap<usize, (String, String)>) {
        let name = if prefix.is_empty() {
            field.name.clone()
        } else {
            format!("{prefix}.{}", field.name)
        };
        for child in &field.children {
            visit(child, &name, columns, out);
        }
        if let Some(column) = columns.get(&field.id) {
            out.insert(*column, (name, field.logical_type.clone()));
        }
    }
    let columns = match file.version() {
        FileVersion::V0_1 | FileVersion::V2_0 => columns_of(file),
        FileVersion::V2_1 | FileVersion::V2_2 => v2_1::columns::assign_columns(file.schema()),
    };
    let mut out = BTreeMap::new();
    for field in &file.schema().fields {
        visit(field, "", &columns, &mut out);
    }
    out
}
