//! The extents of pages. The page table has their starts, and for strings the end of the bytes, where the offsets start; pages are
//! contiguous, so the bytes of strings start where the page before ends.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow_schema::DataType;

use super::page::PageTable;
use super::plain::decode::row_bits;
use crate::schema::Schema;

/// Of each field, in each group, the bytes of its page.
#[derive(Debug, Default)]
pub(crate) struct PageExtents {
    by_field: BTreeMap<i32, BTreeMap<usize, Range<u64>>>,
}

/// Whether a page's bytes lie in front of its position, and the bits behind it by value.
enum Layout {
    Behind(u64),
    AroundOffsets,
}

fn layout(data_type: &DataType) -> Option<Layout> {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => Some(Layout::AroundOffsets),
        DataType::List(_) => Some(Layout::Behind(32)),
        DataType::LargeList(_) => Some(Layout::Behind(64)),
        DataType::Dictionary(key, _) => row_bits(key).map(Layout::Behind),
        other => row_bits(other).map(Layout::Behind),
    }
}

impl PageExtents {
    pub(crate) fn new(schema: &Schema, table: &PageTable) -> PageExtents {
        let mut pages = Vec::new();
        for field in schema.flat_fields() {
            let Some(layout) = field.data_type().ok().as_ref().and_then(layout) else {
                continue;
            };
            for group in 0..table.num_groups() {
                let Some(page) = table.page(field.id, group) else {
                    continue;
                };
                let (bytes, takes_gap) = match layout {
                    Layout::Behind(bits) => (page.length.saturating_mul(bits).div_ceil(8), false),
                    Layout::AroundOffsets => (page.length.saturating_add(1).saturating_mul(8), true),
                };
                pages.push((
                    page.position,
                    page.position.saturating_add(bytes),
                    field.id,
                    group,
                    takes_gap,
                ));
            }
        }
        pages.sort_unstable();
        let mut out = PageExtents::default();
        let mut before = 0;
        for (position, end, field, group, takes_gap) in pages {
            let start = if takes_gap { before.min(position) } else { position };
            out.by_field.entry(field).or_default().insert(group, start..end);
            before = end;
        }
        out
    }

    /// Bytes of all pages of a field.
    pub(crate) fn bytes_of(&self, field: i32) -> u64 {
        let pages = self.by_field.get(&field).into_iter().flat_map(BTreeMap::values);
        pages.fold(0, |sum, page| sum.saturating_add(page.end.saturating_sub(page.start)))
    }

    /// The page of a field in a group.
    pub(crate) fn page(&self, field: i32, group: usize) -> Option<&Range<u64>> {
        self.by_field.get(&field)?.get(&group)
    }
}
