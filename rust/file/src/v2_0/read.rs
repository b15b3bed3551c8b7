//! Reading rows of a field: over its pages, and down into its lists and structs.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{make_array, new_empty_array, ArrayRef, StructArray};
use arrow_schema::DataType;
use futures::future::{try_join_all, BoxFuture};
use futures::FutureExt;

use super::columns::ColumnNode;
use super::list::decode::{item_field, read_extents};
use super::list::text;
use super::page::{count, length, PageContext};
use super::{blob, decode};
use crate::container::{ColumnMeta, Container};
use crate::dictionaries;
use crate::error::{FileError, Result};

/// The wanted rows of one page, counted from the page's first.
pub(crate) struct PageRows {
    pub(crate) number: usize,
    pub(crate) rows: Vec<Range<u64>>,
}

/// Splits sorted rows of a column by page.
pub(crate) fn pages_of(
    file: &Container,
    column: usize,
    meta: &ColumnMeta,
    rows: &[Range<u64>],
) -> Result<Vec<PageRows>> {
    let mut out: Vec<PageRows> = Vec::new();
    let mut number = meta
        .pages
        .partition_point(|p| p.first_value + p.num_values <= rows.first().map_or(0, |r| r.start));
    for range in rows {
        let mut start = range.start;
        while start < range.end {
            let Some(page) = meta.pages.get(number) else {
                return Err(FileError::corrupt(
                    file.path(),
                    format!(
                        "column {column}: expected at least {} values, found {} in its pages",
                        range.end, meta.num_values
                    ),
                ));
            };
            let page_end = page.first_value + page.num_values;
            if start >= page_end {
                number += 1;
                continue;
            }
            let end = range.end.min(page_end);
            let local = start - page.first_value..end - page.first_value;
            match out.last_mut() {
                Some(last) if last.number == number => last.rows.push(local),
                _ => out.push(PageRows {
                    number,
                    rows: vec![local],
                }),
            }
            start = end;
        }
    }
    Ok(out)
}

/// Reads sorted, separate, non-empty `rows` of a field.
pub(crate) fn read_node<'a>(
    file: &'a Container,
    node: &'a ColumnNode,
    rows: &'a [Range<u64>],
) -> BoxFuture<'a, Result<ArrayRef>> {
    async move {
        match node {
            ColumnNode::Leaf { column, data_type, .. } => read_leaf(file, *column, data_type, rows).await,
            ColumnNode::Blob { column, view } => blob::decode::read(file, *column, *view, rows).await,
            ColumnNode::List {
                column,
                data_type,
                item,
            } => {
                let meta = file.column(*column)?;
                let field = item_field(data_type)
                    .ok_or_else(|| FileError::invalid(format!("expected a list type, found {data_type}")))?;
                if matches!(data_type, DataType::LargeList(_)) {
                    let extents = read_extents::<i64>(file, *column, &meta, rows).await?;
                    let items = read_items(file, item, &extents.items).await?;
                    extents.finish(file, *column, field, items)
                } else {
                    let extents = read_extents::<i32>(file, *column, &meta, rows).await?;
                    let items = read_items(file, item, &extents.items).await?;
                    extents.finish(file, *column, field, items)
                }
            }
            ColumnNode::Struct {
                column,
                fields,
                children,
            } => {
                let meta = file.column(*column)?;
                // The header column holds no bytes, but its pages say how many values there are.
                pages_of(file, *column, &meta, rows)?;
                let arrays = try_join_all(children.iter().map(|child| read_node(file, child, rows))).await?;
                let struct_array = if arrays.is_empty() {
                    Ok(StructArray::new_empty_fields(length(count(rows))?, None))
                } else {
                    StructArray::try_new(fields.clone(), arrays, None)
                };
                let struct_array =
                    struct_array.map_err(|e| FileError::corrupt(file.path(), format!("column {column}: {e}")))?;
                Ok(Arc::new(struct_array) as ArrayRef)
            }
        }
    }
    .boxed()
}

async fn read_items(file: &Container, item: &ColumnNode, rows: &[Range<u64>]) -> Result<Option<ArrayRef>> {
    if rows.is_empty() {
        return Ok(None);
    }
    read_node(file, item, rows).await.map(Some)
}

pub(crate) async fn read_leaf(
    file: &Container,
    column: usize,
    data_type: &DataType,
    rows: &[Range<u64>],
) -> Result<ArrayRef> {
    let meta = file.column(column)?;
    if text::is_text(data_type) && text::holds_lists(&meta) {
        return text::read(file, column, data_type, rows).await;
    }
    let pages = pages_of(file, column, &meta, rows)?;
    let mut arrays = Vec::with_capacity(pages.len());
    for PageRows { number, rows } in &pages {
        let Some(page_meta) = meta.pages.get(*number) else {
            continue;
        };
        let page = PageContext {
            file,
            column,
            meta: &meta,
            page: page_meta,
            number: *number,
        };
        let encoding = page.array_encoding()?;
        arrays.push(make_array(
            decode::decode(&page, Some(encoding), data_type, rows).await?,
        ));
    }
    match arrays.len() {
        0 => Ok(new_empty_array(data_type)),
        1 => Ok(arrays.remove(0)),
        _ => {
            dictionaries::join(&arrays).map_err(|e| dictionaries::too_many(data_type, &format!("column {column}"), &e))
        }
    }
}
