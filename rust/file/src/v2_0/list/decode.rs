//! Reading lists: the ends of the rows in each page tell which items to read next.

use std::ops::Range;

use arrow_array::{new_empty_array, ArrayRef, GenericListArray, OffsetSizeTrait};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, FieldRef};
use esker_codec::ends::Offset;
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::array_encoding::ArrayEncoding as Kind;

use crate::container::{ColumnMeta, Container};
use crate::error::{FileError, Result};
use crate::v2_0::binary::decode::fetch_ends;
use crate::v2_0::page::{count, length, PageContext};
use crate::v2_0::read::{pages_of, PageRows};

/// The lists of some rows without their items.
pub(crate) struct ListExtents<O> {
    offsets: Vec<O>,
    nulls: NullBufferBuilder,
    /// The items to read, over all pages of the item column.
    pub(crate) items: Vec<Range<u64>>,
}

fn list_encoding<'a>(page: &PageContext<'a>) -> Result<&'a pb::List> {
    let encoding = page.array_encoding()?;
    match encoding.array_encoding.as_ref() {
        Some(Kind::List(list)) => Ok(list),
        _ => Err(FileError::unsupported(format!(
            "file {}, column {}, page {}: a list in encoding {} cannot be read; a newer esker may read it",
            page.file.path(),
            page.column,
            page.number,
            crate::v2_0::decode::describe(Some(encoding))
        ))),
    }
}

/// Reads the offsets of the lists in `rows`.
pub(crate) async fn read_extents<O: Offset>(
    file: &Container,
    column: usize,
    meta: &ColumnMeta,
    rows: &[Range<u64>],
) -> Result<ListExtents<O>> {
    let num_lists = length(count(rows))?;
    // Each list takes 8 bytes of the file: a larger count is corrupt, and is refused when the offsets are read.
    let in_file = length(file.size() / 8)?;
    let mut extents = ListExtents {
        offsets: Vec::with_capacity(num_lists.min(in_file).saturating_add(1)),
        nulls: NullBufferBuilder::new(num_lists),
        items: Vec::new(),
    };
    extents.offsets.push(O::default());
    let mut items_before = 0_u64;
    let mut pages = pages_of(file, column, meta, rows)?.into_iter().peekable();
    for (number, page_meta) in meta.pages.iter().enumerate() {
        let Some(PageRows { number: next, .. }) = pages.peek() else {
            break;
        };
        let page = PageContext {
            file,
            column,
            meta,
            page: page_meta,
            number,
        };
        let list = list_encoding(&page)?;
        if *next == number {
            if let Some(PageRows { rows, .. }) = pages.next() {
                extents.read_page(&page, list, &rows, items_before).await?;
            }
        }
        items_before = items_before
            .checked_add(list.num_items)
            .ok_or_else(|| page.corrupt("the items of the pages add up to more than 2^64"))?;
    }
    Ok(extents)
}

impl<O: Offset> ListExtents<O> {
    async fn read_page(
        &mut self,
        page: &PageContext<'_>,
        list: &pb::List,
        rows: &[Range<u64>],
        items_before: u64,
    ) -> Result<()> {
        let adjustment = list.null_offset_adjustment;
        let num_lists = length(count(rows))?;
        let ends = fetch_ends(page, list.offsets.as_deref(), adjustment, rows).await?;
        let decoded = ends.decode::<O>(page, adjustment, num_lists)?;
        let base = self.offsets.last().copied().unwrap_or_default().to_u64();
        let last = decoded.offsets.last().copied().unwrap_or_default().to_u64();
        if base.checked_add(last).is_none_or(|end| end > O::MAX) {
            return Err(FileError::invalid(format!(
                "the lists of one batch hold more than {} items; read fewer rows at a time or use large_list",
                O::MAX
            )));
        }
        self.offsets
            .extend(decoded.offsets.iter().skip(1).map(|o| O::from_u64(o.to_u64() + base)));
        match decoded.nulls {
            Some(nulls) => self.nulls.append_buffer(&nulls),
            None => self.nulls.append_n_non_nulls(num_lists),
        }
        for range in decoded.ranges {
            if range.end > list.num_items {
                return Err(page.corrupt(format!(
                    "expected the lists of the page to end within its {} items, found an end of {}",
                    list.num_items, range.end
                )));
            }
            let range = range.start + items_before..range.end + items_before;
            match self.items.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => self.items.push(range),
            }
        }
        Ok(())
    }
}

impl<O: Offset + OffsetSizeTrait> ListExtents<O> {
    /// The lists, given their items.
    pub(crate) fn finish(
        mut self,
        file: &Container,
        column: usize,
        item: &FieldRef,
        items: Option<ArrayRef>,
    ) -> Result<ArrayRef> {
        let items = items.unwrap_or_else(|| new_empty_array(item.data_type()));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let list = GenericListArray::<O>::try_new(item.clone(), offsets, items, self.nulls.finish());
        let list = list.map_err(|e| FileError::corrupt(file.path(), format!("column {column}: {e}")))?;
        Ok(std::sync::Arc::new(list))
    }
}

/// The item field of a list type.
pub(crate) fn item_field(data_type: &DataType) -> Option<&FieldRef> {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) => Some(item),
        _ => None,
    }
}
