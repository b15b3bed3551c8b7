//! Where the pages of a fragment's columns end whose values may have any length.
//!
//! How many bytes such values take in memory is known once some were read, of others that are like them. Where long values follow short ones
//! the pages tell before: writers end a page at so many bytes of values, however few of them are stored.

use super::rows::Most;

/// The most pages of a column that a chunk reads: of about 8 MiB of values each.
const PAGES_AT_ONCE: usize = 2;

/// About the bytes of values of a page.
const PAGE_BYTES: u64 = 8 * 1024 * 1024;

/// Of more columns nobody asks: to find their pages would take longer than what it saves.
pub(super) const MOST_COLUMNS: usize = 64;

/// The row behind each page, in rising order, of some columns.
#[derive(Debug, Default)]
pub(super) struct PageEnds(Vec<Vec<u64>>);

impl PageEnds {
    pub(super) fn new(columns: Vec<Vec<u64>>) -> Self {
        PageEnds(columns)
    }

    /// The bounds of a chunk that starts at `start`: with a size of batches it is of whole ones, and of one at least.
    pub(super) fn most(&self, start: u64, batch_size: Option<usize>) -> Most {
        let end = self.most_end(start);
        let Some(size) = batch_size.map(|size| size.max(1) as u64).filter(|_| end < u64::MAX) else {
            return Most { end, ..Most::default() };
        };
        Most {
            rows: ((end - start) / size).max(1).saturating_mul(size),
            ..Most::default()
        }
    }

    /// About the bytes in memory of the columns' values in a row, if the pages there are full.
    pub(super) fn bytes_per_row(&self, row: u64) -> u64 {
        let bytes = self.0.iter().map(|ends| {
            let page = ends.partition_point(|end| *end <= row);
            let start = page.checked_sub(1).and_then(|before| ends.get(before));
            let end = ends.get(page).copied().unwrap_or(u64::MAX);
            PAGE_BYTES / (end - start.copied().unwrap_or(0)).max(1)
        });
        bytes.fold(0, u64::saturating_add)
    }

    /// The row before which a chunk ends that starts at `start`.
    pub(super) fn most_end(&self, start: u64) -> u64 {
        let ends = self.0.iter().filter_map(|ends| {
            let first = ends.partition_point(|end| *end <= start);
            ends.get(first + PAGES_AT_ONCE - 1)
        });
        ends.min().copied().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_a_chunk_ends_with_the_second_page_of_any_column() {
        let ends = PageEnds::new(vec![vec![100, 103, 106, 109], vec![60, 104]]);
        assert_eq!([0, 59, 60, 99].map(|start| ends.most_end(start)), [103, 103, 103, 103]);
        assert_eq!(
            [100, 103, 105, 106].map(|start| ends.most_end(start)),
            [106, 109, 109, u64::MAX]
        );
        assert_eq!(PageEnds::new(vec![vec![10, 90]]).most_end(0), 90);
        assert_eq!(PageEnds::default().most_end(7), u64::MAX);
        let few = PageEnds::new(vec![vec![1 << 23, (1 << 23) + 8], vec![1 << 22, 1 << 24]]);
        assert_eq!(
            [0, 1 << 22, 1 << 23, 1 << 24].map(|row| few.bytes_per_row(row)),
            [3, 1, 1 << 20, 0]
        );
        let rows = |size| ends.most(3, Some(size)).rows;
        assert_eq!([1, 30, 100, 1000].map(rows), [100, 90, 100, 1000]);
        assert_eq!(ends.most(3, Some(30)).end, u64::MAX);
        assert_eq!(ends.most(3, None).end, 103);
        assert_eq!(PageEnds::default().most(7, Some(10)), Most::default());
    }
}
