//! Pages: where they lie and which of their rows a read wants.

use std::ops::{Range, RangeInclusive};

use bytes::Bytes;

use crate::error::{FileError, Result};

/// One page of one field in one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page {
    /// Where it starts in the file; for strings, where their offsets start.
    pub(crate) position: u64,
    /// Values in it; for a list one more than there are lists.
    pub(crate) length: u64,
}

/// All pages of a file, or of its statistics.
#[derive(Debug, Clone)]
pub(crate) struct PageTable {
    first_field: i32,
    /// The first row of each group, and the row after the last.
    group_offsets: Vec<u64>,
    /// Field by field, group by group.
    pages: Vec<Page>,
}

impl PageTable {
    /// Bytes of the table of `num_fields` fields in `num_groups` groups.
    pub(crate) fn encoded_len(num_fields: u64, num_groups: u64) -> Option<u64> {
        num_fields.checked_mul(num_groups)?.checked_mul(16)
    }

    /// Decodes the table of the fields from `first_field` on. A negative position or length is damage.
    pub(crate) fn decode(bytes: &[u8], first_field: i32, group_offsets: Vec<u64>) -> Option<PageTable> {
        let number = |at: &[u8]| at.first_chunk::<8>().map(|b| i64::from_le_bytes(*b));
        let pages = bytes.chunks_exact(16).map(|entry| {
            let (position, length) = entry.split_at_checked(8)?;
            Some(Page {
                position: u64::try_from(number(position)?).ok()?,
                length: u64::try_from(number(length)?).ok()?,
            })
        });
        Some(PageTable {
            first_field,
            group_offsets,
            pages: pages.collect::<Option<Vec<_>>>()?,
        })
    }

    /// The table of one page, which is all that `field` has.
    pub(crate) fn of_one_page(field: i32, page: Page, rows: u64) -> PageTable {
        PageTable {
            first_field: field,
            group_offsets: vec![0, rows],
            pages: vec![page],
        }
    }

    pub(crate) fn num_groups(&self) -> usize {
        self.group_offsets.len().saturating_sub(1)
    }

    pub(crate) fn num_rows(&self) -> u64 {
        self.group_offsets.last().copied().unwrap_or(0)
    }

    /// The first row of each group, and the row after the last.
    pub(crate) fn group_offsets(&self) -> &[u64] {
        &self.group_offsets
    }

    /// The page of a field in a group; none where the table has no such field.
    pub(crate) fn page(&self, field: i32, group: usize) -> Option<Page> {
        let row = usize::try_from(field.checked_sub(self.first_field)?).ok()?;
        if group >= self.num_groups() {
            return None;
        }
        let at = row.checked_mul(self.num_groups())?.checked_add(group)?;
        self.pages.get(at).copied()
    }

    /// Splits sorted rows of the file by group.
    pub(crate) fn split(&self, rows: &[Range<u64>]) -> Vec<PageRows> {
        let mut out: Vec<PageRows> = Vec::new();
        let mut group = 0;
        for range in rows {
            let mut start = range.start;
            while start < range.end {
                let behind = self.group_offsets.get(group..).unwrap_or_default();
                group += behind.partition_point(|first| *first <= start).saturating_sub(1);
                let bounds = self.group_offsets.get(group).zip(self.group_offsets.get(group + 1));
                let Some((first, end)) = bounds else { return out };
                let stop = range.end.min(*end);
                let local = start - first..stop - first;
                match out.last_mut() {
                    Some(last) if last.group == group => last.rows.push(local),
                    _ => out.push(PageRows {
                        group,
                        rows: vec![local],
                    }),
                }
                start = stop;
            }
        }
        out
    }
}

/// The wanted rows of one page, counted from its first: sorted and apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageRows {
    pub(crate) group: usize,
    pub(crate) rows: Vec<Range<u64>>,
}

/// How many rows there are in `pages`.
pub(crate) fn count_rows(pages: &[PageRows]) -> u64 {
    let rows = pages.iter().flat_map(|page| &page.rows);
    rows.map(|r| r.end.saturating_sub(r.start)).fold(0, u64::saturating_add)
}

/// A field's pages in an open file, and what errors call them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldPages<'a> {
    pub(crate) path: &'a str,
    pub(crate) file_size: u64,
    pub(crate) table: &'a PageTable,
    pub(crate) field: i32,
    pub(crate) column: &'a str,
}

impl FieldPages<'_> {
    /// An error that says in which page the bytes are wrong.
    pub(crate) fn corrupt(&self, group: usize, message: impl std::fmt::Display) -> FileError {
        FileError::corrupt(
            self.path,
            format!("column '{}', page of group {group}: {message}", self.column),
        )
    }

    /// An error about the column as a whole.
    pub(crate) fn corrupt_column(&self, message: impl std::fmt::Display) -> FileError {
        FileError::corrupt(self.path, format!("column '{}': {message}", self.column))
    }

    /// The page of `rows`, which must hold them all and `beyond` values more.
    pub(crate) fn page(&self, rows: &PageRows, beyond: u64) -> Result<Page> {
        let page = self.table.page(self.field, rows.group).ok_or_else(|| {
            self.corrupt(
                rows.group,
                format!("expected field {} in the page table, found no such field", self.field),
            )
        })?;
        let wanted = rows.rows.last().map_or(0, |r| r.end);
        if wanted.checked_add(beyond).is_none_or(|end| end > page.length) {
            return Err(self.corrupt(
                rows.group,
                format!("expected at least {wanted} rows, found {} values", page.length),
            ));
        }
        Ok(page)
    }

    /// Checks that bytes lie in the file and, since pages do not overlap, that they are no more than the file in sum.
    pub(crate) fn check(&self, group: usize, ranges: &[Range<u64>]) -> Result<()> {
        let mut sum = 0_u64;
        for range in ranges {
            if range.end > self.file_size || range.start > range.end {
                return Err(self.corrupt(
                    group,
                    format!(
                        "expected bytes within the file's {}, found {}..{}",
                        self.file_size, range.start, range.end
                    ),
                ));
            }
            sum = sum.saturating_add(range.end - range.start);
        }
        if sum > self.file_size {
            return Err(self.corrupt(
                group,
                format!(
                    "expected pages that do not overlap, found {sum} bytes of them in a file of {}",
                    self.file_size
                ),
            ));
        }
        Ok(())
    }

    /// Where `length` bytes at `offset` of a page lie in the file.
    pub(crate) fn range(&self, group: usize, page: Page, bytes: Range<u64>) -> Result<Range<u64>> {
        let start = page.position.checked_add(bytes.start);
        let range = start.zip(page.position.checked_add(bytes.end));
        range
            .map(|(start, end)| start..end)
            .ok_or_else(|| self.corrupt(group, "expected a page within 2^64 bytes, found it beyond"))
    }
}

/// The bytes of a round of requests, in the order in which they were asked for.
pub(crate) type Parts = std::vec::IntoIter<Bytes>;

/// The next `count` of them.
pub(crate) fn take_parts(parts: &mut Parts, count: usize) -> Vec<Bytes> {
    parts.by_ref().take(count).collect()
}

/// The bytes of a page table: a page for each field of `ids` in each group, (0, 0) where there is none.
pub(crate) fn encode_table(
    pages: &[(i32, usize, Page)],
    ids: RangeInclusive<i32>,
    num_groups: usize,
) -> Option<Vec<u8>> {
    let first = *ids.start();
    let num_fields = u64::try_from(i64::from(*ids.end()) - i64::from(first) + 1).ok()?;
    let length = PageTable::encoded_len(num_fields, num_groups as u64)?;
    let mut out = vec![0; usize::try_from(length).ok()?];
    for (field, group, page) in pages {
        let row = usize::try_from(field.checked_sub(first)?).ok()?;
        let at = row.checked_mul(num_groups)?.checked_add(*group)?.checked_mul(16)?;
        let entry = out.get_mut(at..at.checked_add(16)?)?;
        let (position, length) = entry.split_at_mut_checked(8)?;
        position.copy_from_slice(&page.position.to_le_bytes());
        length.copy_from_slice(&page.length.to_le_bytes());
    }
    Some(out)
}
