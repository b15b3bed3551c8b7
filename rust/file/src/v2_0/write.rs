//! Buffers the values of each column until they fill a page.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{new_empty_array, Array, ArrayRef};
use arrow_schema::{DataType, Field};
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::array_encoding::ArrayEncoding as Kind;
use prost::Message;

use super::columns::ColumnNode;
use super::compression::Compression;
use super::encode::{self, encoding, PageBuffers};
use super::list::encode::{encode_offsets, spanned_items};
use super::retain::{bare_list, own, sharing};
use crate::container::WrittenPage;
use crate::error::{FileError, Result};
use crate::schema::{description_type, BlobKind};
use crate::version::FileVersion;

const ARRAY_ENCODING: &str = "/lance.encodings.ArrayEncoding";

/// Values of one column that wait to be encoded as a page.
#[derive(Debug)]
pub(crate) struct PendingPage {
    column: usize,
    name: String,
    kind: PendingKind,
    arrays: Vec<ArrayRef>,
    /// How many of the arrays, from the first, are in memory of their own.
    owned: usize,
    bytes: u64,
    priority: u64,
    /// Some page of this column was begun.
    begun: bool,
}

#[derive(Debug, Clone)]
enum PendingKind {
    Values(DataType, Option<Compression>),
    Offsets { large: bool },
}

impl PendingPage {
    fn new(column: usize, name: &str, kind: PendingKind) -> Self {
        PendingPage {
            column,
            name: name.to_string(),
            kind,
            arrays: Vec::new(),
            owned: 0,
            bytes: 0,
            priority: 0,
            begun: false,
        }
    }

    fn add(&mut self, array: ArrayRef, bytes: u64, row: u64) {
        if self.arrays.is_empty() {
            self.priority = row;
        }
        self.begun = true;
        let (array, items) = sharing(&array, self.arrays.last());
        self.arrays.push(array);
        self.bytes = self.bytes.saturating_add(bytes).saturating_add(items);
    }

    fn own(&mut self) {
        let end = self.arrays.len();
        own(&mut self.arrays, self.owned, end);
        self.owned = end;
    }

    fn take(&mut self) -> PendingPage {
        let next = PendingPage {
            begun: true,
            ..PendingPage::new(self.column, &self.name, self.kind.clone())
        };
        std::mem::replace(self, next)
    }

    /// A column below lists that are all empty still has a page: readers ask for one.
    fn begin(&mut self) {
        if self.begun {
            return;
        }
        let empty = match &self.kind {
            PendingKind::Values(data_type, _) => new_empty_array(data_type),
            PendingKind::Offsets { large } => bare_list(&new_empty_array(&list_of_null(*large)), *large),
        };
        self.add(empty, 0, 0);
    }

    /// Bytes of the values.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Encodes the page. This is the expensive part, and needs nothing but the page.
    pub(crate) fn encode(self) -> Result<WrittenPage> {
        let mut out = PageBuffers::default();
        let num_values = self.arrays.iter().map(|a| a.len() as u64).sum();
        let encoding = match &self.kind {
            PendingKind::Values(data_type, compression) => {
                encode::encode(&self.name, &self.arrays, data_type, *compression, &mut out)?
            }
            PendingKind::Offsets { large: false } => encode_offsets(
                &self.arrays.iter().map(|a| a.as_list::<i32>()).collect::<Vec<_>>(),
                &mut out,
            ),
            PendingKind::Offsets { large: true } => encode_offsets(
                &self.arrays.iter().map(|a| a.as_list::<i64>()).collect::<Vec<_>>(),
                &mut out,
            ),
        };
        Ok(page(self.column, num_values, self.priority, out, &encoding))
    }
}

fn page(column: usize, num_values: u64, priority: u64, out: PageBuffers, encoding: &pb::ArrayEncoding) -> WrittenPage {
    WrittenPage {
        column,
        buffers: out.buffers,
        num_values,
        priority,
        encoding_type: ARRAY_ENCODING,
        encoding: encoding.encode_to_vec(),
    }
}

/// The columns of one field while a file is written.
#[derive(Debug)]
pub(crate) enum ColumnSink {
    Leaf {
        pending: PendingPage,
    },
    List {
        pending: PendingPage,
        large: bool,
        item: Box<ColumnSink>,
    },
    Struct {
        column: usize,
        name: String,
        num_values: u64,
        children: Vec<ColumnSink>,
    },
}

impl ColumnSink {
    /// The sink of a field that `node` places in columns.
    pub(crate) fn new(name: &str, node: &ColumnNode) -> ColumnSink {
        match node {
            ColumnNode::Leaf {
                column,
                data_type,
                compression,
            } => ColumnSink::leaf(*column, name, data_type.clone(), *compression),
            ColumnNode::Blob { column, .. } => ColumnSink::leaf(*column, name, description_type(BlobKind::V1), None),
            ColumnNode::List {
                column,
                data_type,
                item,
            } => {
                let large = matches!(data_type, DataType::LargeList(_));
                ColumnSink::List {
                    pending: PendingPage::new(*column, name, PendingKind::Offsets { large }),
                    large,
                    item: Box::new(ColumnSink::new(&format!("{name}.item"), item)),
                }
            }
            ColumnNode::Struct {
                column,
                fields,
                children,
            } => ColumnSink::Struct {
                column: *column,
                name: name.to_string(),
                num_values: 0,
                children: fields
                    .iter()
                    .zip(children)
                    .map(|(field, child)| ColumnSink::new(&format!("{name}.{}", field.name()), child))
                    .collect(),
            },
        }
    }

    fn leaf(column: usize, name: &str, data_type: DataType, compression: Option<Compression>) -> ColumnSink {
        ColumnSink::Leaf {
            pending: PendingPage::new(column, name, PendingKind::Values(data_type, compression)),
        }
    }

    /// Takes values in; pages that they fill go to `full`. `row` is the top-level row of the first value.
    pub(crate) fn push(
        &mut self,
        array: &ArrayRef,
        row: u64,
        page_bytes: u64,
        full: &mut Vec<PendingPage>,
    ) -> Result<()> {
        if array.is_empty() {
            return Ok(());
        }
        match self {
            ColumnSink::Leaf { pending } => {
                push_pieces(pending, array, array_bytes(array), row, page_bytes, full);
            }
            ColumnSink::List { pending, large, item } => {
                let items = if *large {
                    spanned_items(array.as_list::<i64>())
                } else {
                    spanned_items(array.as_list::<i32>())
                };
                push_pieces(
                    pending,
                    &bare_list(array, *large),
                    array.len() as u64 * 8,
                    row,
                    page_bytes,
                    full,
                );
                item.push(&items, row, page_bytes, full)?;
            }
            ColumnSink::Struct {
                name,
                num_values,
                children,
                ..
            } => {
                let array = array.as_struct();
                if array.null_count() > 0 {
                    return Err(FileError::UnsupportedColumn {
                        column: name.clone(),
                        data_type: array.data_type().to_string(),
                        version: FileVersion::V2_0,
                        what: "a null struct, version 2.1 can; fill the nulls".into(),
                    });
                }
                *num_values = num_values.saturating_add(array.len() as u64);
                for (child, values) in children.iter_mut().zip(array.columns()) {
                    child.push(values, row, page_bytes, full)?;
                }
            }
        }
        Ok(())
    }

    /// Bytes that wait to be encoded.
    pub(crate) fn pending_bytes(&self) -> u64 {
        match self {
            ColumnSink::Leaf { pending } => pending.bytes,
            ColumnSink::List { pending, item, .. } => pending.bytes.saturating_add(item.pending_bytes()),
            ColumnSink::Struct { children, .. } => children.iter().map(ColumnSink::pending_bytes).sum(),
        }
    }

    /// Copies what waits, so that it does not keep the batch that it came with.
    pub(crate) fn own(&mut self) {
        match self {
            ColumnSink::Leaf { pending } => pending.own(),
            ColumnSink::List { pending, item, .. } => {
                pending.own();
                item.own();
            }
            ColumnSink::Struct { children, .. } => children.iter_mut().for_each(ColumnSink::own),
        }
    }

    /// Hands over all that waits.
    pub(crate) fn flush(&mut self, full: &mut Vec<PendingPage>) {
        match self {
            ColumnSink::Leaf { pending } => flush_page(pending, full),
            ColumnSink::List { pending, item, .. } => {
                flush_page(pending, full);
                item.flush(full);
            }
            ColumnSink::Struct { children, .. } => children.iter_mut().for_each(|child| child.flush(full)),
        }
    }

    /// Gives every column that got no value a page without values.
    pub(crate) fn begin_all(&mut self) {
        match self {
            ColumnSink::Leaf { pending } => pending.begin(),
            ColumnSink::List { pending, item, .. } => {
                pending.begin();
                item.begin_all();
            }
            ColumnSink::Struct { children, .. } => children.iter_mut().for_each(ColumnSink::begin_all),
        }
    }

    /// The pages of struct headers, written once at the end: they hold a count and nothing else.
    pub(crate) fn headers(&self, out: &mut Vec<WrittenPage>) {
        match self {
            ColumnSink::Leaf { .. } => {}
            ColumnSink::List { item, .. } => item.headers(out),
            ColumnSink::Struct {
                column,
                num_values,
                children,
                ..
            } => {
                let header = encoding(Kind::Struct(pb::SimpleStruct {}));
                out.push(page(*column, *num_values, 0, PageBuffers::default(), &header));
                children.iter().for_each(|child| child.headers(out));
            }
        }
    }
}

fn list_of_null(large: bool) -> DataType {
    let item = Arc::new(Field::new("item", DataType::Null, true));
    if large {
        DataType::LargeList(item)
    } else {
        DataType::List(item)
    }
}

fn flush_page(pending: &mut PendingPage, full: &mut Vec<PendingPage>) {
    if !pending.arrays.is_empty() {
        full.push(pending.take());
    }
}

/// Adds an array in pieces of about a page.
fn push_pieces(
    pending: &mut PendingPage,
    array: &ArrayRef,
    bytes: u64,
    row: u64,
    page_bytes: u64,
    full: &mut Vec<PendingPage>,
) {
    let len = array.len();
    let bytes_per_value = bytes.checked_div(len as u64).unwrap_or(0).max(1);
    let step = usize::try_from(page_bytes / bytes_per_value)
        .unwrap_or(usize::MAX)
        .max(1);
    let mut start = 0;
    while start < len {
        let size = step.min(len - start);
        let piece = array.slice(start, size);
        pending.add(
            piece,
            bytes_per_value.saturating_mul(size as u64),
            row.saturating_add(start as u64),
        );
        if pending.bytes >= page_bytes {
            full.push(pending.take());
        }
        start += size;
    }
}

/// Bytes that the array's values take when they are encoded, more or less.
pub(crate) fn array_bytes(array: &ArrayRef) -> u64 {
    fn of_ends<O: arrow_array::OffsetSizeTrait>(offsets: &[O]) -> u64 {
        let range: Range<usize> =
            offsets.first().map_or(0, |o| o.as_usize())..offsets.last().map_or(0, |o| o.as_usize());
        (range.end - range.start) as u64 + offsets.len() as u64 * 8
    }
    match array.data_type() {
        DataType::Utf8 => of_ends(array.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => of_ends(array.as_string::<i64>().value_offsets()),
        DataType::Binary => of_ends(array.as_binary::<i32>().value_offsets()),
        DataType::LargeBinary => of_ends(array.as_binary::<i64>().value_offsets()),
        DataType::FixedSizeList(_, _) => array_bytes(array.as_fixed_size_list().values()),
        DataType::Struct(_) => array.as_struct().columns().iter().map(array_bytes).sum(),
        DataType::Dictionary(key, _) => array.len() as u64 * key.primitive_width().unwrap_or(8) as u64,
        DataType::Boolean => (array.len() as u64).div_ceil(8),
        DataType::Null => 1,
        other => array.len() as u64 * super::flat::decode::byte_width(other).unwrap_or(8),
    }
}
