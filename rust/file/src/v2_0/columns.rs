//! Maps fields to the columns of a file.

use std::collections::BTreeMap;

use arrow_schema::{DataType, Fields};

use super::compression::Compression;
use super::list::text;
use crate::container::Container;
use crate::error::{FileError, Result};
use crate::schema::{BlobKind, BlobView, Field, Schema};

/// A field with the columns that hold it and the fields below it.
#[derive(Debug, Clone)]
pub(crate) enum ColumnNode {
    /// One column holds all of it.
    Leaf {
        column: usize,
        data_type: DataType,
        /// What the field's metadata ask a writer to do.
        compression: Option<Compression>,
    },
    /// A column of end offsets, and the items.
    List {
        column: usize,
        data_type: DataType,
        item: Box<ColumnNode>,
    },
    /// A header column without bytes, and the fields.
    Struct {
        column: usize,
        fields: Fields,
        children: Vec<ColumnNode>,
    },
    /// Descriptions of blobs, and the form in which they are wanted.
    Blob { column: usize, view: BlobView },
}

/// Numbers the columns of a file that holds `schema` alone: depth first, nothing below a packed struct.
pub(crate) fn assign_columns(schema: &Schema) -> BTreeMap<i32, usize> {
    number(schema, &|_, _| 1)
}

/// The columns of an open file in the order of its own fields.
pub(crate) fn columns_of(file: &Container) -> BTreeMap<i32, usize> {
    let columns = assign_columns(file.schema());
    if columns.len() >= file.num_columns() {
        return columns;
    }
    // Strings may take two: their ends, and their bytes.
    number(file.schema(), &|field, column| {
        let is_text = field.data_type().is_ok_and(|data_type| text::is_text(&data_type));
        let in_lists = is_text && file.column(column).is_ok_and(|meta| text::holds_lists(&meta));
        1 + usize::from(in_lists)
    })
}

/// Numbers the columns depth first; `taken` says how many a field takes from its column on.
fn number(schema: &Schema, taken: &dyn Fn(&Field, usize) -> usize) -> BTreeMap<i32, usize> {
    fn visit(
        field: &Field,
        taken: &dyn Fn(&Field, usize) -> usize,
        next: &mut usize,
        columns: &mut BTreeMap<i32, usize>,
    ) {
        columns.insert(field.id, *next);
        *next = next.saturating_add(taken(field, *next));
        if !field.is_packed_struct() && !field.is_blob() {
            for child in &field.children {
                visit(child, taken, next, columns);
            }
        }
    }
    let (mut columns, mut next) = (BTreeMap::new(), 0);
    for field in &schema.fields {
        visit(field, taken, &mut next, &mut columns);
    }
    columns
}

impl ColumnNode {
    /// Finds the columns of `field`; `column_of` maps field ids to columns.
    pub(crate) fn new(field: &Field, column_of: &dyn Fn(i32) -> Option<usize>) -> Result<ColumnNode> {
        let column = column_of(field.id).ok_or_else(|| {
            FileError::invalid(format!(
                "column '{}': expected the data file to name a column for field {}, found none; the table and the file disagree",
                field.name, field.id
            ))
        })?;
        let data_type = field.data_type()?;
        if let Some(kind) = field.blob_kind() {
            let view = field.blob_view.unwrap_or(BlobView::Bytes);
            return match kind {
                BlobKind::V1 => Ok(ColumnNode::Blob { column, view }),
                BlobKind::V2 => Err(FileError::unsupported(format!(
                    "column '{}': expected blobs of kind lance.blob.v2 in files of version 2.2, found them in one of 2.0",
                    field.name
                ))),
            };
        }
        if field.is_list() {
            let item = Box::new(ColumnNode::new(field.item()?, column_of)?);
            return Ok(ColumnNode::List {
                column,
                data_type,
                item,
            });
        }
        match data_type {
            DataType::Struct(fields) if !field.is_packed_struct() => {
                let children = field
                    .children
                    .iter()
                    .map(|c| ColumnNode::new(c, column_of))
                    .collect::<Result<Vec<_>>>()?;
                Ok(ColumnNode::Struct {
                    column,
                    fields,
                    children,
                })
            }
            data_type => Ok(ColumnNode::Leaf {
                column,
                compression: Compression::of(field, &data_type),
                data_type,
            }),
        }
    }

    /// The node of a column, this one or one below it.
    pub(crate) fn find(&self, wanted: usize) -> Option<&ColumnNode> {
        match self {
            ColumnNode::Leaf { column, .. }
            | ColumnNode::List { column, .. }
            | ColumnNode::Struct { column, .. }
            | ColumnNode::Blob { column, .. }
                if *column == wanted =>
            {
                Some(self)
            }
            ColumnNode::Leaf { .. } | ColumnNode::Blob { .. } => None,
            ColumnNode::List { item, .. } => item.find(wanted),
            ColumnNode::Struct { children, .. } => children.iter().find_map(|child| child.find(wanted)),
        }
    }

    /// Calls `visit` for every column of this node.
    pub(crate) fn for_each_column(&self, visit: &mut dyn FnMut(usize)) {
        match self {
            ColumnNode::Leaf { column, .. } | ColumnNode::Blob { column, .. } => visit(*column),
            ColumnNode::List { column, item, .. } => {
                visit(*column);
                item.for_each_column(visit);
            }
            ColumnNode::Struct { column, children, .. } => {
                visit(*column);
                children.iter().for_each(|child| child.for_each_column(visit));
            }
        }
    }
}
