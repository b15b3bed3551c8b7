//! The pages of one row group for the `parquet` crate, with the two checks that it leaves out.
//!
//! A page says how many values it has, and its repetition levels are runs. Where the runs are fewer, the crate's reader of values gives up,
//! but its skipper waits for levels that never come, without an end. Such a page is an error here, before anybody skips in it. So is one that
//! claims to have more lengths of texts than values (see `delta_lengths`).

use std::sync::Arc;

use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;

use crate::delta_lengths::excess;

/// Values of a bit-packed run come in groups of so many.
const PACKED_GROUP: u64 = 8;
/// Bytes of the length in front of the levels of a page of version 1.
const LENGTH: usize = 4;

/// One row group of a file.
pub(crate) struct CheckedGroup<R> {
    input: Arc<R>,
    metadata: Arc<ParquetMetaData>,
    group: usize,
}

impl<R: ChunkReader> CheckedGroup<R> {
    pub(crate) fn new(input: R, metadata: Arc<ParquetMetaData>, group: usize) -> Self {
        Self {
            input: Arc::new(input),
            metadata,
            group,
        }
    }

    fn group(&self) -> Result<&RowGroupMetaData> {
        let group = self.metadata.row_groups().get(self.group);
        group.ok_or_else(|| ParquetError::General(format!("expected a row group {}, found none", self.group)))
    }
}

impl<R: ChunkReader + 'static> RowGroups for CheckedGroup<R> {
    fn num_rows(&self) -> usize {
        let rows = self.group().ok().and_then(|group| group.num_rows().try_into().ok());
        rows.unwrap_or_default()
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let found = self.group()?.columns().get(column);
        let column = found.ok_or_else(|| ParquetError::General(format!("expected a column {column}, found none")))?;
        let pages = SerializedPageReader::new(Arc::clone(&self.input), column, self.num_rows(), None)?;
        let described = column.column_descr();
        let levels = Levels {
            repetition: bits(described.max_rep_level()),
            definition: bits(described.max_def_level()),
        };
        Ok(Box::new(OneChunk(Some(Box::new(CheckedPages { pages, levels })))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.group().into_iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The one chunk that a column has in a row group.
struct OneChunk(Option<Box<dyn PageReader>>);

impl Iterator for OneChunk {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for OneChunk {}

/// Bits of the levels of a column; 0 where it has none of them.
#[derive(Clone, Copy)]
struct Levels {
    repetition: u32,
    definition: u32,
}

fn bits(greatest: i16) -> u32 {
    u32::BITS - u32::from(greatest.unsigned_abs()).leading_zeros()
}

/// The pages of a column, each with as many repetition levels as it has values, and no more lengths.
struct CheckedPages<P> {
    pages: P,
    levels: Levels,
}

impl<P: PageReader> PageReader for CheckedPages<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            check(page, self.levels)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

impl<P: PageReader> Iterator for CheckedPages<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// Refuses a page of fewer repetition levels than values, or of more lengths.
fn check(page: &Page, levels: Levels) -> Result<()> {
    let (repetition, values) = match page {
        Page::DataPage {
            buf,
            num_values,
            def_level_encoding,
            rep_level_encoding,
            ..
        } => {
            let mut rest: &[u8] = buf;
            let repetition = take_levels(&mut rest, *rep_level_encoding, levels.repetition, *num_values);
            take_levels(&mut rest, *def_level_encoding, levels.definition, *num_values);
            // Levels that are packed without runs are as many as the values, or the crate finds too few bytes.
            let runs = (*rep_level_encoding == Encoding::RLE).then_some(repetition);
            (runs, rest)
        }
        Page::DataPageV2 {
            buf,
            rep_levels_byte_len,
            def_levels_byte_len,
            ..
        } => {
            let repetition = *rep_levels_byte_len as usize;
            let behind = repetition.saturating_add(*def_levels_byte_len as usize);
            let runs = buf.get(..repetition).unwrap_or_default();
            (Some(runs), buf.get(behind..).unwrap_or_default())
        }
        Page::DictionaryPage { .. } => return Ok(()),
    };
    let count = page.num_values();
    let found = repetition.filter(|_| levels.repetition > 0);
    let found = found.map(|runs| levels_of(runs, levels.repetition));
    if let Some(found) = found.filter(|found| *found < u64::from(count)) {
        return Err(ParquetError::General(format!(
            "a page of {count} values with {found} repetition levels"
        )));
    }
    match excess(values, page.encoding(), count) {
        Some(claimed) => Err(ParquetError::General(format!(
            "a page of {count} values that claims to have {claimed} lengths"
        ))),
        None => Ok(()),
    }
}

/// The levels at the start of a page of version 1, of which `rest` is left without them. Where they end behind the page nothing is left.
fn take_levels<'b>(rest: &mut &'b [u8], encoding: Encoding, width: u32, count: u32) -> &'b [u8] {
    let bytes = *rest;
    let (start, length) = match (width, encoding) {
        (0, _) => (0, Some(0)),
        (_, Encoding::RLE) => {
            let length = bytes.get(..LENGTH).and_then(|length| length.try_into().ok());
            (LENGTH, length.map(|length| u64::from(u32::from_le_bytes(length))))
        }
        _ => (0, Some(u64::from(count).saturating_mul(u64::from(width)).div_ceil(8))),
    };
    let length = length.and_then(|length| usize::try_from(length).ok());
    let end = length.and_then(|length| length.checked_add(start));
    let found = end.and_then(|end| bytes.get(start..end));
    *rest = end.and_then(|end| bytes.get(end..)).unwrap_or_default();
    found.unwrap_or_default()
}

/// How many levels such runs hold: `(count << 1 | 1)` groups of 8 packed ones, or `count << 1` times one. The last group may be cut off.
fn levels_of(mut runs: &[u8], width: u32) -> u64 {
    let mut levels = 0_u64;
    while let Some(run) = take_number(&mut runs).filter(|run| *run != 0) {
        let count = run >> 1;
        let (held, bytes) = if run & 1 == 1 {
            let there = (runs.len() as u64).saturating_mul(8) / u64::from(width.max(1));
            let held = count.saturating_mul(PACKED_GROUP);
            (held.min(there), count.saturating_mul(u64::from(width)))
        } else {
            (count, u64::from(width.div_ceil(8)))
        };
        let Some(rest) = usize::try_from(bytes).ok().and_then(|bytes| runs.get(bytes..)) else {
            // Packed levels up to the end of the bytes; of a repeated level not all bytes are there, which the crate refuses.
            return if run & 1 == 1 {
                levels.saturating_add(held)
            } else {
                levels
            };
        };
        levels = levels.saturating_add(held);
        runs = rest;
    }
    levels
}

/// The next number of 7 bits a byte; `None` at the end, or where it has more than 32 bits, as no count has.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for at in 0..5 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << (7 * at);
        if first & 0x80 == 0 {
            return u32::try_from(number).ok().map(u64::from);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    const LISTS: Levels = Levels {
        repetition: 1,
        definition: 0,
    };

    /// A page of lists of whole numbers with such repetition levels.
    fn page(values: u32, levels: &[u8], second: bool) -> Page {
        if second {
            return Page::DataPageV2 {
                buf: Bytes::copy_from_slice(levels),
                num_values: values,
                encoding: Encoding::PLAIN,
                num_nulls: 0,
                num_rows: values,
                def_levels_byte_len: 0,
                rep_levels_byte_len: levels.len() as u32,
                is_compressed: false,
                statistics: None,
            };
        }
        let length = (levels.len() as u32).to_le_bytes();
        Page::DataPage {
            buf: length.iter().chain(levels).copied().collect(),
            num_values: values,
            encoding: Encoding::PLAIN,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    #[test]
    fn test_levels_of_runs_are_counted_as_they_are_decoded() {
        // 300 times a zero; then two groups of packed levels of one bit; then none.
        let runs = [0xd8, 0x04, 0, 5, 0b0101_0101, 0xff];
        assert_eq!(levels_of(&runs, 1), 300 + 16);
        assert_eq!(levels_of(&runs[..5], 1), 300 + 8, "the last group is cut off");
        assert_eq!(levels_of(&runs[..2], 1), 0, "the value of the run is not there");
        assert_eq!(
            levels_of(&[3, 0xff, 0xff, 0, 8, 1], 2),
            8,
            "what follows a zero is padding"
        );
        assert_eq!(levels_of(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff], 1), 0);
        assert_eq!(levels_of(&[], 1), 0);
    }

    #[test]
    fn test_a_page_of_fewer_levels_than_values_is_refused() {
        for second in [false, true] {
            let runs = [200, 1, 0];
            check(&page(100, &runs, second), LISTS).unwrap();
            let error = check(&page(101, &runs, second), LISTS).unwrap_err().to_string();
            assert!(error.contains("101 values with 100 repetition levels"), "{error}");
            assert!(check(&page(1, &[], second), LISTS).is_err());
        }
    }

    /// A page of texts in lists, of which some are null.
    fn texts(values: u32, lengths: &[u8], second: bool, levels: Encoding) -> Page {
        // 100 levels of each kind: a run of zeros, or a bit each.
        let runs: &[u8] = if levels == Encoding::RLE {
            &[200, 1, 0]
        } else {
            &[0; 13]
        };
        if second {
            return Page::DataPageV2 {
                buf: [runs, runs, lengths].concat().into(),
                num_values: values,
                encoding: Encoding::DELTA_LENGTH_BYTE_ARRAY,
                num_nulls: 0,
                num_rows: values,
                def_levels_byte_len: runs.len() as u32,
                rep_levels_byte_len: runs.len() as u32,
                is_compressed: false,
                statistics: None,
            };
        }
        let length = (runs.len() as u32).to_le_bytes();
        let length: &[u8] = if levels == Encoding::RLE { &length } else { &[] };
        Page::DataPage {
            buf: [length, runs, length, runs, lengths].concat().into(),
            num_values: values,
            encoding: Encoding::DELTA_LENGTH_BYTE_ARRAY,
            def_level_encoding: levels,
            rep_level_encoding: levels,
            statistics: None,
        }
    }

    #[test]
    #[allow(deprecated)]
    fn test_a_page_that_claims_more_lengths_than_values_is_refused() {
        let nulls = Levels {
            repetition: 1,
            definition: 1,
        };
        let lengths = |count: u8| [0x80, 1, 4, count, 0];
        for (second, levels) in [
            (false, Encoding::RLE),
            (true, Encoding::RLE),
            (false, Encoding::BIT_PACKED),
        ] {
            check(&texts(100, &lengths(100), second, levels), nulls).unwrap();
            let error = check(&texts(100, &lengths(101), second, levels), nulls);
            let error = error.unwrap_err().to_string();
            assert!(error.contains("100 values that claims to have 101 lengths"), "{error}");
        }
    }
}
