//! Which pages of a column are copied, and which rows are read instead.

use std::ops::Range;

use esker_file::raw_page::PagePlace;

use crate::read::count;

/// A run of a column's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    /// A page as it is.
    Page(usize),
    /// Rows, to be encoded anew.
    Rows(Vec<Range<u64>>),
}

/// What decides whether a page is worth copying.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopyRule {
    /// The size of a full page in bytes.
    pub page_bytes: u64,
    /// The bytes that a value of the column takes at least, decoded.
    pub width: u64,
}

impl CopyRule {
    /// Whether a page is at least an eighth of a full one: by its bytes, by those of its values, or, as values may be compressed, by its
    /// rows beside the fullest of the file's pages.
    fn is_large(&self, page: &PagePlace, most_rows: u64, is_only: bool) -> bool {
        let rows = page.rows.end - page.rows.start;
        let eighth = self.page_bytes / 8;
        let compressed = !is_only && rows >= most_rows / 8 && page.bytes >= eighth / 8;
        page.bytes >= eighth || rows.saturating_mul(self.width) >= eighth || compressed
    }
}

/// Splits the wanted rows of a column into pages to copy and rows to read. `waiting` is what waits to fill a page, in bytes of values: a page
/// is not copied behind less than an eighth of a page, which would make a page of its own.
pub(super) fn segments(pages: &[PagePlace], rows: &[Range<u64>], rule: CopyRule, waiting: &mut u64) -> Vec<Segment> {
    let most_rows = pages
        .iter()
        .map(|page| page.rows.end - page.rows.start)
        .max()
        .unwrap_or(0);
    let mut out: Vec<Segment> = Vec::new();
    let wait = |out: &mut Vec<Segment>, rows: Vec<Range<u64>>, bytes: u64, waiting: &mut u64| {
        if rows.is_empty() {
            return;
        }
        *waiting = waiting.saturating_add(bytes) % rule.page_bytes.max(1);
        match out.last_mut() {
            Some(Segment::Rows(before)) => before.extend(rows),
            _ => out.push(Segment::Rows(rows)),
        }
    };
    let mut ranges = rows.iter().cloned().peekable();
    for (number, page) in pages.iter().enumerate() {
        let mut here: Vec<Range<u64>> = Vec::new();
        while let Some(range) = ranges.peek_mut() {
            if range.start >= page.rows.end {
                break;
            }
            let end = range.end.min(page.rows.end);
            here.push(range.start..end);
            if end < range.end {
                range.start = end;
                break;
            }
            ranges.next();
        }
        let wanted = count(&here);
        let is_whole = wanted > 0 && wanted == page.rows.end - page.rows.start;
        let fits = *waiting == 0 || *waiting >= rule.page_bytes / 8;
        if is_whole && fits && rule.is_large(page, most_rows, pages.len() < 2) {
            out.push(Segment::Page(number));
            *waiting = 0;
            continue;
        }
        let total = (page.rows.end - page.rows.start).max(1);
        let share = u64::try_from(u128::from(page.bytes) * u128::from(wanted) / u128::from(total)).unwrap_or(u64::MAX);
        let bytes = share.max(wanted.saturating_mul(rule.width));
        wait(&mut out, here, bytes, waiting);
    }
    let rest: Vec<Range<u64>> = ranges.collect();
    let bytes = count(&rest).saturating_mul(rule.width);
    wait(&mut out, rest, bytes, waiting);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: CopyRule = CopyRule {
        page_bytes: 800,
        width: 1,
    };

    fn pages(sizes: &[(u64, u64)]) -> Vec<PagePlace> {
        let mut start = 0;
        let place = |(rows, bytes): &(u64, u64)| {
            let rows = start..start + rows;
            start = rows.end;
            PagePlace { rows, bytes: *bytes }
        };
        sizes.iter().map(place).collect()
    }

    #[test]
    fn test_whole_large_pages_are_copied() {
        let pages = pages(&[(10, 800), (10, 800), (10, 800)]);
        let all = segments(&pages, &[0..30], RULE, &mut 0);
        assert_eq!(all, vec![Segment::Page(0), Segment::Page(1), Segment::Page(2)]);
        // A deleted row in the second page.
        let most = segments(&pages, &[0..15, 16..30], RULE, &mut 0);
        let rows = Segment::Rows(vec![10..15, 16..20]);
        assert_eq!(most, vec![Segment::Page(0), rows, Segment::Page(2)]);
    }

    #[test]
    fn test_small_pages_are_joined() {
        let few = pages(&[(10, 11), (10, 11)]);
        assert_eq!(
            segments(&few, &[0..20], RULE, &mut 0),
            vec![Segment::Rows(vec![0..10, 10..20])]
        );
        let alone = pages(&[(10, 99)]);
        let mut waiting = 0;
        let read = segments(&alone, &[0..10], RULE, &mut waiting);
        assert_eq!(read, vec![Segment::Rows(vec![0..10])]);
        assert_eq!(waiting, 99);
        // A page behind so little that it would be a small page of its own.
        let full = pages(&[(10, 700), (10, 700)]);
        let after = segments(&full, &[0..20], RULE, &mut waiting);
        assert_eq!(after, vec![Segment::Rows(vec![0..10]), Segment::Page(1)]);
    }

    #[test]
    fn test_every_row_is_in_one_segment() {
        let pages = pages(&[(7, 800), (3, 10), (20, 800), (1, 1)]);
        for rows in [
            vec![0..31],
            vec![0..3, 5..31],
            vec![6..8, 9..12, 30..31],
            vec![29..30],
            vec![],
        ] {
            let mut found = 0;
            for segment in segments(&pages, &rows, RULE, &mut 0) {
                found += match segment {
                    Segment::Page(number) => pages[number].rows.end - pages[number].rows.start,
                    Segment::Rows(rows) => count(&rows),
                };
            }
            assert_eq!(found, count(&rows), "{rows:?}");
        }
    }
}
