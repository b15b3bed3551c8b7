//! Encodes arrays as pages: one page per field and group, buffered until the buffer is full.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;

use super::column::{ColumnNode, Kind};
use super::dictionary::encode::DictionaryWriters;
use super::page::Page;
use super::{list, plain, var_binary};
use crate::error::{FileError, Result};
use crate::nulls::replaced;
use crate::version::FileVersion;

/// Pages while they are written.
#[derive(Debug, Default)]
pub(crate) struct PageWriter {
    /// Bytes that went out before `buffer`.
    pub(crate) written: u64,
    pub(crate) buffer: Vec<u8>,
    /// Field and page, of the group that is written.
    pub(crate) pages: Vec<(i32, Page)>,
}

impl PageWriter {
    /// Where the next byte will lie in the file.
    pub(crate) fn position(&self) -> u64 {
        self.written.saturating_add(self.buffer.len() as u64)
    }

    /// Notes a page that starts at `position`.
    pub(crate) fn add(&mut self, field: i32, position: u64, length: u64) {
        self.pages.push((field, Page { position, length }));
    }
}

/// What encoding a column needs beside its values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EncodeContext<'a> {
    /// Whether values that the version cannot represent (nulls) are written as what readers will see, instead of being refused.
    pub(crate) allow_null_loss: bool,
    pub(crate) dictionaries: &'a DictionaryWriters,
}

impl EncodeContext<'_> {
    /// Refuses `count` values that would be lost, unless `allow_null_loss`.
    pub(crate) fn check_loss(&self, node: &ColumnNode, count: usize, what: &str, becomes: &str) -> Result<()> {
        if count == 0 || self.allow_null_loss {
            return Ok(());
        }
        Err(FileError::UnsupportedColumn {
            column: node.path.clone(),
            data_type: node.data_type.to_string(),
            version: FileVersion::V0_1,
            what: format!(
                "{what}: {count} of them would be read as {becomes}; fill them, use a newer data_storage_version, \
                 or write the rows with write_dataset(..., allow_null_loss=True), which loses them"
            ),
        })
    }
}

/// Adds the pages of a column of one group, whose values come in `arrays`.
pub(crate) fn encode(
    context: EncodeContext<'_>,
    node: &ColumnNode,
    arrays: &[ArrayRef],
    out: &mut PageWriter,
) -> Result<()> {
    match &node.kind {
        Kind::Null => {
            let rows: usize = arrays.iter().map(|a| a.len()).sum();
            out.add(node.id, out.position(), rows as u64);
            Ok(())
        }
        Kind::Plain => plain::encode::encode(context, node, arrays, out),
        Kind::VarBinary => var_binary::encode::encode(context, node, arrays, out),
        Kind::Dictionary => context.dictionaries.encode(context, node, arrays, out),
        Kind::List(item) => list::encode::encode(context, node, item, arrays, out),
        Kind::Struct(_, children) => {
            let nulls: usize = arrays.iter().map(|a| a.null_count()).sum();
            context.check_loss(node, nulls, "null structs", "structs of zeros and nulls")?;
            for (index, child) in children.iter().enumerate() {
                let values = arrays.iter().map(|array| {
                    let parent = array.as_struct();
                    let column = parent.columns().get(index).cloned();
                    let column = column.ok_or_else(|| FileError::invalid("expected a struct of all its fields"))?;
                    with_nulls(&column, parent.nulls())
                });
                encode(context, child, &values.collect::<Result<Vec<_>>>()?, out)?;
            }
            Ok(())
        }
    }
}

/// The array with a null wherever `nulls` has one.
pub(crate) fn with_nulls(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else {
        return Ok(array.clone());
    };
    if array.data_type().is_null() {
        return Ok(array.clone());
    }
    let nulls = NullBuffer::union(Some(nulls), array.nulls());
    replaced(array, nulls).map_err(|e| FileError::invalid(format!("expected nulls that fit their values: {e}")))
}
