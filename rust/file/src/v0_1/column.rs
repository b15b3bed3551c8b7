//! Columns of a read: the projected fields, and their arrays while the bytes are fetched.
//!
//! A read proceeds in rounds. In each, every column requests the ranges that it needs next, all of them are fetched in one call (pages of
//! one group are adjacent, so that the store coalesces them), and every column receives its bytes: first values of fixed width and
//! offsets, then the bytes of strings and the items of lists, and so on down.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, NullArray, StructArray};
use arrow_schema::{DataType, Fields};
use bytes::Bytes;

use super::dictionary::decode::DictionaryRead;
use super::list::decode::ListRead;
use super::page::{count_rows, FieldPages, PageRows, PageTable, Parts};
use super::plain::decode::PlainRead;
use super::var_binary::decode::VarBinaryRead;
use crate::error::{FileError, Result};
use crate::schema::Field;
use crate::v2_0::page::length;

/// The values of dictionary columns by field id.
pub type Dictionaries = BTreeMap<i32, ArrayRef>;

/// A projected field, and the layout of its pages.
#[derive(Debug, Clone)]
pub(crate) struct ColumnNode {
    pub(crate) id: i32,
    pub(crate) name: String,
    /// Its name, dotted below a struct or list.
    pub(crate) path: String,
    pub(crate) data_type: DataType,
    pub(crate) nullable: bool,
    pub(crate) kind: Kind,
}

/// How a field's pages are laid out.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Null,
    Plain,
    VarBinary,
    Dictionary,
    List(Box<ColumnNode>),
    Struct(Fields, Vec<ColumnNode>),
}

impl ColumnNode {
    pub(crate) fn new(field: &Field, parent: Option<&str>) -> Result<ColumnNode> {
        let path = match parent {
            Some(parent) => format!("{parent}.{}", field.name),
            None => field.name.clone(),
        };
        let data_type = field.data_type()?;
        let child = |child: &Field| ColumnNode::new(child, Some(&path));
        let kind = match &data_type {
            DataType::Null => Kind::Null,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => Kind::VarBinary,
            DataType::Dictionary(_, _) => Kind::Dictionary,
            DataType::List(_) | DataType::LargeList(_) => Kind::List(Box::new(child(field.item()?)?)),
            DataType::Struct(fields) => Kind::Struct(
                fields.clone(),
                field.children.iter().map(child).collect::<Result<Vec<_>>>()?,
            ),
            _ => Kind::Plain,
        };
        Ok(ColumnNode {
            id: field.id,
            name: field.name.clone(),
            path,
            data_type,
            nullable: field.nullable,
            kind,
        })
    }

    /// Calls `visit` on this node and all below it, parents first.
    pub(crate) fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a ColumnNode)) {
        visit(self);
        match &self.kind {
            Kind::List(item) => item.walk(visit),
            Kind::Struct(_, children) => children.iter().for_each(|child| child.walk(visit)),
            Kind::Null | Kind::Plain | Kind::VarBinary | Kind::Dictionary => {}
        }
    }
}

/// A column without children and the names that lead to it.
pub(crate) type Leaf<'a> = (Vec<String>, &'a ColumnNode);

impl ColumnNode {
    /// Collects the columns without children that have one value a row: this one, or those in structs below it.
    pub(crate) fn leaves<'a>(&'a self, above: &[String], out: &mut Vec<Leaf<'a>>) {
        let mut names = above.to_vec();
        names.push(self.name.clone());
        match &self.kind {
            Kind::Struct(_, children) => children.iter().for_each(|child| child.leaves(&names, out)),
            Kind::List(_) => {}
            Kind::Null | Kind::Plain | Kind::VarBinary | Kind::Dictionary => out.push((names, self)),
        }
    }
}

/// What the columns of one read share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadContext<'a> {
    pub(crate) path: &'a str,
    pub(crate) file_size: u64,
    pub(crate) table: &'a PageTable,
    pub(crate) dictionaries: &'a Dictionaries,
}

impl<'a> ReadContext<'a> {
    pub(crate) fn pages(&self, node: &'a ColumnNode) -> FieldPages<'a> {
        FieldPages {
            path: self.path,
            file_size: self.file_size,
            table: self.table,
            field: node.id,
            column: &node.path,
        }
    }
}

/// A column whose bytes are being fetched.
#[derive(Debug)]
pub(crate) enum ColumnRead<'a> {
    Null(u64),
    Plain(PlainRead<'a>),
    VarBinary(VarBinaryRead<'a>),
    Dictionary(DictionaryRead<'a>),
    List(ListRead<'a>),
    Struct {
        pages: FieldPages<'a>,
        fields: &'a Fields,
        rows: u64,
        children: Vec<ColumnRead<'a>>,
    },
}

impl<'a> ColumnRead<'a> {
    pub(crate) fn new(context: ReadContext<'a>, node: &'a ColumnNode, rows: Vec<PageRows>) -> Result<ColumnRead<'a>> {
        let pages = context.pages(node);
        Ok(match &node.kind {
            Kind::Null => {
                rows.iter().try_for_each(|rows| pages.page(rows, 0).map(|_| ()))?;
                ColumnRead::Null(count_rows(&rows))
            }
            Kind::Plain => ColumnRead::Plain(PlainRead::new(pages, &node.data_type, &rows)?),
            Kind::VarBinary => ColumnRead::VarBinary(VarBinaryRead::new(pages, &node.data_type, node.nullable, &rows)?),
            Kind::Dictionary => {
                let values = context.dictionaries.get(&node.id).ok_or_else(|| {
                    FileError::corrupt(
                        context.path,
                        format!(
                            "column '{}': expected the values of a dictionary, found none",
                            node.path
                        ),
                    )
                })?;
                ColumnRead::Dictionary(DictionaryRead::new(pages, &node.data_type, values.clone(), &rows)?)
            }
            Kind::List(item) => ColumnRead::List(ListRead::new(context, pages, &node.data_type, item, rows)?),
            Kind::Struct(fields, children) => ColumnRead::Struct {
                pages,
                fields,
                rows: count_rows(&rows),
                children: children
                    .iter()
                    .map(|child| ColumnRead::new(context, child, rows.clone()))
                    .collect::<Result<Vec<_>>>()?,
            },
        })
    }

    /// Adds the bytes that are needed next.
    pub(crate) fn requests(&self, out: &mut Vec<Range<u64>>) {
        match self {
            ColumnRead::Null(_) => {}
            ColumnRead::Plain(read) => read.requests(out),
            ColumnRead::VarBinary(read) => read.requests(out),
            ColumnRead::Dictionary(read) => read.keys.requests(out),
            ColumnRead::List(read) => read.requests(out),
            ColumnRead::Struct { children, .. } => children.iter().for_each(|child| child.requests(out)),
        }
    }

    /// Takes the bytes that [`ColumnRead::requests`] named.
    pub(crate) fn receive(&mut self, parts: &mut Parts) -> Result<()> {
        match self {
            ColumnRead::Null(_) => Ok(()),
            ColumnRead::Plain(read) => {
                read.receive(parts);
                Ok(())
            }
            ColumnRead::VarBinary(read) => read.receive(parts),
            ColumnRead::Dictionary(read) => {
                read.keys.receive(parts);
                Ok(())
            }
            ColumnRead::List(read) => read.receive(parts),
            ColumnRead::Struct { children, .. } => children.iter_mut().try_for_each(|child| child.receive(parts)),
        }
    }

    /// Whether nothing is needed any more.
    fn is_done(&self) -> bool {
        match self {
            ColumnRead::Null(_) => true,
            ColumnRead::Plain(read) => read.is_done(),
            ColumnRead::VarBinary(read) => read.is_done(),
            ColumnRead::Dictionary(read) => read.keys.is_done(),
            ColumnRead::List(read) => read.items().is_some_and(ColumnRead::is_done),
            ColumnRead::Struct { children, .. } => children.iter().all(ColumnRead::is_done),
        }
    }

    /// The array, once nothing is needed any more.
    pub(crate) fn finish(self) -> Result<ArrayRef> {
        match self {
            ColumnRead::Null(rows) => Ok(Arc::new(NullArray::new(length(rows)?))),
            ColumnRead::Plain(read) => read.finish(),
            ColumnRead::VarBinary(read) => read.finish(),
            ColumnRead::Dictionary(read) => read.finish(),
            ColumnRead::List(read) => read.finish(),
            ColumnRead::Struct {
                pages,
                fields,
                rows,
                children,
            } => {
                let arrays = children
                    .into_iter()
                    .map(ColumnRead::finish)
                    .collect::<Result<Vec<_>>>()?;
                if arrays.is_empty() {
                    return Ok(Arc::new(StructArray::new_empty_fields(length(rows)?, None)));
                }
                let array = StructArray::try_new(fields.clone(), arrays, None);
                Ok(Arc::new(array.map_err(|e| pages.corrupt_column(e))?))
            }
        }
    }
}

/// The columns of one read, round by round.
#[derive(Debug)]
pub(crate) struct Rounds<'a> {
    reads: Vec<ColumnRead<'a>>,
}

impl<'a> Rounds<'a> {
    pub(crate) fn new(context: ReadContext<'a>, nodes: &'a [ColumnNode], rows: &[PageRows]) -> Result<Rounds<'a>> {
        let reads = nodes.iter().map(|node| ColumnRead::new(context, node, rows.to_vec()));
        Ok(Rounds {
            reads: reads.collect::<Result<Vec<_>>>()?,
        })
    }

    /// The bytes that are needed next; none once all are there.
    pub(crate) fn next(&self) -> Option<Vec<Range<u64>>> {
        if self.reads.iter().all(ColumnRead::is_done) {
            return None;
        }
        let mut wanted = Vec::new();
        self.reads.iter().for_each(|read| read.requests(&mut wanted));
        Some(wanted)
    }

    pub(crate) fn receive(&mut self, parts: Vec<Bytes>) -> Result<()> {
        let mut parts = parts.into_iter();
        self.reads.iter_mut().try_for_each(|read| read.receive(&mut parts))
    }

    pub(crate) fn finish(self) -> Result<Vec<ArrayRef>> {
        self.reads.into_iter().map(ColumnRead::finish).collect()
    }
}

/// Checks that an array has the requested number of values.
pub(crate) fn check_length(array: ArrayRef, rows: u64, pages: &FieldPages<'_>) -> Result<ArrayRef> {
    if array.len() as u64 == rows {
        return Ok(array);
    }
    Err(pages.corrupt_column(format!("expected {rows} values, found {}", array.len())))
}
