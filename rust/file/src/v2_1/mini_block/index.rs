//! The chunk index of a mini-block page: which chunk holds which rows, and the chunks' positions.

use std::ops::Range;

use esker_proto::lance::encodings21 as pb;

use crate::container::u64_at;
use crate::error::Result;
use crate::v2_1::page::PageId;

/// The chunks of a page. Everything counts from the page's start, and each list has one more entry than there are chunks.
#[derive(Debug)]
pub(crate) struct ChunkIndex {
    /// Where each chunk starts among the chunks' bytes.
    starts: Vec<u64>,
    /// Values before each chunk.
    values: Vec<u64>,
    /// With lists: rows that start before each chunk. Without, a row is a value.
    rows: Option<Vec<u64>>,
    /// With lists: the chunks that start in the middle of a row.
    preambles: Vec<bool>,
}

impl ChunkIndex {
    /// Reads the words and the repetition index, which is empty where there is none.
    pub(crate) fn new(
        at: &PageId,
        layout: &pb::MiniBlockLayout,
        num_rows: u64,
        words: &[u8],
        repetition: Option<&[u8]>,
        chunk_bytes: u64,
    ) -> Result<ChunkIndex> {
        let words: Vec<u32> = if layout.has_large_chunk {
            words
                .as_chunks::<4>()
                .0
                .iter()
                .map(|w| u32::from_le_bytes(*w))
                .collect()
        } else {
            let words = words.as_chunks::<2>().0.iter();
            words.map(|w| u32::from(u16::from_le_bytes(*w))).collect()
        };
        let mut starts = Vec::with_capacity(words.len() + 1);
        let mut values = Vec::with_capacity(words.len() + 1);
        let (mut start, mut before) = (0_u64, 0_u64);
        for (number, word) in words.iter().enumerate() {
            starts.push(start);
            values.push(before);
            start += (u64::from(word >> 4) + 1) * 8;
            let rest = layout.num_items.checked_sub(before);
            let count = match (word & 15, number + 1 == words.len()) {
                (_, true) => rest,
                (0, false) => Some(1),
                (log, false) => Some(1 << log),
            };
            before = count.and_then(|count| before.checked_add(count)).unwrap_or(u64::MAX);
        }
        starts.push(start);
        values.push(before);
        if before != layout.num_items || start > chunk_bytes {
            return Err(at.corrupt(format!(
                "expected chunks of {} values within {chunk_bytes} bytes, found {before} values in {start} bytes",
                layout.num_items
            )));
        }
        let mut index = ChunkIndex {
            starts,
            values,
            rows: None,
            preambles: Vec::new(),
        };
        match repetition {
            Some(repetition) => index.read_rows(at, layout, num_rows, repetition)?,
            None if layout.num_items != num_rows => {
                return Err(at.corrupt(format!(
                    "expected a value for each of {num_rows} rows, found {} values",
                    layout.num_items
                )))
            }
            None => {}
        }
        Ok(index)
    }

    fn read_rows(&mut self, at: &PageId, layout: &pb::MiniBlockLayout, num_rows: u64, stored: &[u8]) -> Result<()> {
        let stride = (layout.repetition_index_depth as usize)
            .saturating_add(1)
            .saturating_mul(8);
        let chunks = self.num_chunks();
        if stored.len() != stride.saturating_mul(chunks) {
            return Err(at.corrupt(format!(
                "expected a repetition index of {chunks} chunks, found {} bytes",
                stored.len()
            )));
        }
        let mut rows = Vec::with_capacity(chunks + 1);
        let (mut before, mut is_open) = (0_u64, false);
        for chunk in stored.chunks_exact(stride) {
            let (ends, left) = (u64_at(chunk, 0).unwrap_or(0), u64_at(chunk, 8).unwrap_or(0));
            rows.push(before);
            self.preambles.push(is_open);
            // Rows that start here: those that end here and the one that goes on, but not the one that came in.
            let starts = ends.checked_add(u64::from(left > 0));
            let starts = starts.and_then(|starts| starts.checked_sub(u64::from(is_open)));
            before = starts
                .and_then(|starts| before.checked_add(starts))
                .filter(|rows| *rows <= num_rows)
                .ok_or_else(|| {
                    at.corrupt(format!(
                        "expected a repetition index of {num_rows} rows, found other numbers"
                    ))
                })?;
            is_open = left > 0;
        }
        rows.push(before);
        if before != num_rows {
            return Err(at.corrupt(format!(
                "expected a repetition index of {num_rows} rows, found {before}"
            )));
        }
        self.rows = Some(rows);
        Ok(())
    }

    pub(crate) fn num_chunks(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Bytes that the index takes in memory.
    pub(crate) fn memory(&self) -> usize {
        (self.starts.len() + self.values.len() + self.rows.as_ref().map_or(0, Vec::len)) * 8 + self.preambles.len()
    }

    /// Where a chunk lies among the chunks' bytes.
    pub(crate) fn bytes(&self, chunk: usize) -> Range<u64> {
        between(&self.starts, chunk)
    }

    /// The values of a chunk, counted from the page's first.
    pub(crate) fn values(&self, chunk: usize) -> Range<u64> {
        between(&self.values, chunk)
    }

    /// The rows that start in a chunk.
    pub(crate) fn rows(&self, chunk: usize) -> Range<u64> {
        between(self.row_starts(), chunk)
    }

    /// True if all of a chunk belongs to `rows`, of which it holds some: a row that came in as well as one that goes on.
    pub(crate) fn is_whole(&self, chunk: usize, rows: &Range<u64>) -> bool {
        let own = self.rows(chunk);
        let has_preamble = self.preambles.get(chunk).copied().unwrap_or(false);
        rows.end >= own.end && (rows.start < own.start || (rows.start == own.start && !has_preamble))
    }

    fn row_starts(&self) -> &[u64] {
        self.rows.as_deref().unwrap_or(&self.values)
    }

    /// The chunks that hold a non-empty range of the page's rows.
    pub(crate) fn chunks(&self, rows: &Range<u64>) -> Range<usize> {
        let starts = self.row_starts();
        let chunk_of = |row: u64| starts.partition_point(|start| *start <= row).saturating_sub(1);
        let first = chunk_of(rows.start);
        let last = chunk_of(rows.end.saturating_sub(1)).max(first);
        if self.rows.is_none() {
            return first..last + 1;
        }
        // The last row goes on through the chunks that start in its middle.
        let more = self.preambles.iter().skip(last + 1).take_while(|preamble| **preamble);
        let mut end = last + 1;
        for (chunk, _) in (last + 1..).zip(more) {
            end = chunk + 1;
            if !self.rows(chunk).is_empty() {
                break;
            }
        }
        // A row that ends in the chunk where the next one starts needs no more than that chunk.
        if self.rows(last).end > rows.end {
            end = last + 1;
        }
        first..end
    }
}

fn between(list: &[u64], index: usize) -> Range<u64> {
    let start = list.get(index).copied().unwrap_or(0);
    start..list.get(index + 1).copied().unwrap_or(start)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::version::FileVersion;

    fn at() -> PageId {
        PageId {
            path: "a.lance".into(),
            version: FileVersion::V2_1,
            column: 0,
            number: 0,
        }
    }

    /// The row of each entry, cut into chunks of so many entries each; the last holds the rest.
    fn cut(rows: &[usize], logs: &[u32]) -> Vec<Vec<usize>> {
        let entries: Vec<usize> = rows.iter().enumerate().flat_map(|(row, n)| vec![row; *n]).collect();
        let (mut rest, mut chunks) = (&entries[..], Vec::new());
        for log in logs {
            if rest.len() > 1 << log {
                let (chunk, after) = rest.split_at(1 << log);
                chunks.push(chunk.to_vec());
                rest = after;
            }
        }
        chunks.push(rest.to_vec());
        chunks
    }

    fn index(chunks: &[Vec<usize>], num_rows: usize) -> Result<ChunkIndex> {
        let num_items: usize = chunks.iter().map(Vec::len).sum();
        let (mut words, mut repetition) = (Vec::new(), Vec::new());
        for (number, chunk) in chunks.iter().enumerate() {
            let is_last = number + 1 == chunks.len();
            let word = if is_last { 0 } else { chunk.len().ilog2() as u16 };
            words.extend_from_slice(&word.to_le_bytes());
            let next = chunks.get(number + 1).and_then(|chunk| chunk.first());
            let goes_on = next.is_some() && next == chunk.last();
            let left = chunk.iter().filter(|row| goes_on && chunk.last() == Some(row)).count() as u64;
            let mut held = chunk.clone();
            held.dedup();
            let ends = held.len() as u64 - u64::from(goes_on);
            repetition.extend_from_slice(&ends.to_le_bytes());
            repetition.extend_from_slice(&left.to_le_bytes());
        }
        let layout = pb::MiniBlockLayout {
            num_items: num_items as u64,
            repetition_index_depth: 1,
            ..Default::default()
        };
        let bytes = chunks.len() as u64 * 8;
        ChunkIndex::new(&at(), &layout, num_rows as u64, &words, Some(&repetition), bytes)
    }

    proptest! {
        #[test]
        fn test_rows_are_found_in_the_chunks_that_hold_their_entries(
            rows in prop::collection::vec(1_usize..20, 1..30),
            logs in prop::collection::vec(1_u32..5, 0..40),
            from in 0_usize..30,
            len in 1_usize..30,
        ) {
            let chunks = cut(&rows, &logs);
            let index = index(&chunks, rows.len()).unwrap();
            let from = from % rows.len();
            let to = (from + len).min(rows.len());
            let held: Vec<usize> = (0..chunks.len())
                .filter(|chunk| chunks[*chunk].iter().any(|row| (from..to).contains(row)))
                .collect();
            let range = from as u64..to as u64;
            prop_assert_eq!(index.chunks(&range).collect::<Vec<_>>(), held.clone());
            for chunk in held {
                let all = chunks[chunk].iter().all(|row| (from..to).contains(row));
                prop_assert_eq!(index.is_whole(chunk, &range), all);
            }
        }
    }

    #[test]
    fn test_an_index_of_other_rows_or_values_is_refused() {
        let chunks = cut(&[3, 5, 1], &[2, 1]);
        assert!(index(&chunks, 3).is_ok());
        assert!(index(&chunks, 2).is_err());
        assert!(index(&chunks, 4).is_err());
        let layout = pb::MiniBlockLayout {
            num_items: 9,
            ..Default::default()
        };
        let word = 3_u16 << 4;
        let read = |rows, words: &[u8], bytes| ChunkIndex::new(&at(), &layout, rows, words, None, bytes);
        assert!(read(9, &word.to_le_bytes(), 32).is_ok());
        assert!(read(9, &word.to_le_bytes(), 31).is_err());
        assert!(read(8, &word.to_le_bytes(), 32).is_err());
        assert!(read(9, &[], 32).is_err());
    }
}
