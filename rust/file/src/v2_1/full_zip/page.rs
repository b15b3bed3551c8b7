//! The description of a full-zip page, and the byte ranges of its rows.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;
use esker_proto::lance::encodings21 as pb;
use esker_proto::lance::encodings21::full_zip_layout::Details;

use super::decode::FixedValues;
use crate::error::Result;
use crate::v2_1::decode::Compression;
use crate::v2_1::levels::layers::Layers;
use crate::v2_1::page::{to_len, PageId};

/// Indices up to this size are read whole and kept; of larger ones the entries that a read wants.
const KEPT_INDEX: u64 = 64 * 1024;

/// A page of zipped values.
#[derive(Debug)]
pub(crate) struct FullZipPage {
    pub(crate) layers: Layers,
    pub(crate) values: ZippedValues,
    /// Bytes of the levels before each value.
    pub(crate) word_size: usize,
    pub(crate) bits_def: u32,
    pub(crate) has_rep: bool,
    pub(crate) has_def: bool,
    /// The largest definition level of an entry with a value.
    pub(crate) max_visible: u16,
    pub(crate) num_rows: u64,
    data: Range<u64>,
    index: Option<RowIndex>,
}

/// Where the rows start.
#[derive(Debug)]
struct RowIndex {
    range: Range<u64>,
    width: u64,
    /// All of it, once it was read.
    kept: OnceLock<Bytes>,
}

/// How the values lie behind their levels.
#[derive(Debug)]
pub(crate) enum ZippedValues {
    Fixed(FixedValues),
    /// Bytes of the length before each value.
    Variable(usize, Compression),
}

/// What of the index has to be read before rows can be.
#[derive(Debug)]
pub(crate) enum IndexNeed {
    Nothing,
    /// All of it.
    Whole(Range<u64>),
    /// Two entries for each range of rows: where it starts, where it ends.
    Entries(Vec<Range<u64>>),
}

impl FullZipPage {
    /// Reads the description of a page of `num_rows` rows.
    pub(crate) fn new(
        at: &PageId,
        layout: &pb::FullZipLayout,
        layers: Layers,
        num_rows: u64,
        buffers: &[Range<u64>],
    ) -> Result<FullZipPage> {
        let compression = Compression::new(at, layout.value_compression.as_ref())?;
        let values = match layout.details {
            Some(Details::BitsPerValue(bits)) => {
                ZippedValues::Fixed(FixedValues::new(at, compression, u64::from(bits))?)
            }
            Some(Details::BitsPerOffset(bits @ (8 | 16 | 32 | 64))) => {
                ZippedValues::Variable(to_len(at, u64::from(bits / 8))?, compression)
            }
            Some(Details::BitsPerOffset(bits)) => {
                return Err(at.corrupt(format!("expected lengths of 32 or 64 bits, found {bits}")))
            }
            None => return Err(at.missing("the width of values")),
        };
        let (bits_rep, bits_def) = (layout.bits_rep, layout.bits_def);
        let word_size = match bits_rep.saturating_add(bits_def) {
            0 => 0,
            1..=8 => 1,
            9..=16 => 2,
            17..=32 => 4,
            bits => return Err(at.corrupt(format!("expected at most 32 bits of levels, found {bits}"))),
        };
        if bits_def > 16 || bits_rep > 16 {
            return Err(at.corrupt(format!("expected levels of 16 bits, found {bits_rep} and {bits_def}")));
        }
        if (bits_rep > 0) != (layers.max_rep > 0) {
            return Err(at.corrupt(format!(
                "expected repetition levels where there are lists and only there, found {bits_rep} bits of them"
            )));
        }
        let data = buffers
            .first()
            .cloned()
            .ok_or_else(|| at.missing("a buffer of values"))?;
        let needs_index = bits_rep > 0 || matches!(values, ZippedValues::Variable(..));
        let index = match buffers.get(1) {
            Some(range) if needs_index => Some(RowIndex::new(at, range.clone(), num_rows)?),
            None if needs_index => return Err(at.missing("a buffer of row starts")),
            _ => None,
        };
        let page = FullZipPage {
            max_visible: layers.max_visible(),
            layers,
            values,
            word_size,
            bits_def,
            has_rep: bits_rep > 0,
            has_def: bits_def > 0,
            num_rows,
            data,
            index,
        };
        if let Some(stride) = page.stride() {
            let size = stride.checked_mul(num_rows);
            if size != Some(page.data.end - page.data.start) {
                return Err(at.corrupt(format!(
                    "expected {num_rows} rows of {stride} bytes, found {} bytes",
                    page.data.end - page.data.start
                )));
            }
        }
        Ok(page)
    }

    /// Bytes of a row, where all rows have the same.
    fn stride(&self) -> Option<u64> {
        match &self.values {
            ZippedValues::Fixed(values) if !self.has_rep => Some((self.word_size.saturating_add(values.width)) as u64),
            _ => None,
        }
    }

    /// Bytes that a cached page takes.
    pub(crate) fn memory(&self) -> usize {
        4096 + self
            .index
            .as_ref()
            .and_then(|index| index.kept.get())
            .map_or(0, Bytes::len)
    }

    fn is_whole(&self, rows: &[Range<u64>]) -> bool {
        matches!(rows, [only] if *only == (0..self.num_rows))
    }

    /// What to read before `rows` can be.
    pub(crate) fn index_need(&self, rows: &[Range<u64>]) -> IndexNeed {
        match &self.index {
            Some(index) if index.kept.get().is_none() && !self.is_whole(rows) => {
                if index.range.end - index.range.start <= KEPT_INDEX {
                    return IndexNeed::Whole(index.range.clone());
                }
                let entry = |row: u64| {
                    let start = index.range.start + row * index.width;
                    start..start + index.width
                };
                IndexNeed::Entries(rows.iter().flat_map(|r| [entry(r.start), entry(r.end)]).collect())
            }
            _ => IndexNeed::Nothing,
        }
    }

    /// Keeps the whole index.
    pub(crate) fn keep_index(&self, bytes: &Bytes) {
        if let Some(index) = &self.index {
            // Copied, since a slice would keep the larger read in memory.
            let _ = index.kept.set(Bytes::copy_from_slice(bytes));
        }
    }

    /// Where each range of rows lies in the file. `entries` are what [`IndexNeed::Entries`] asked for.
    pub(crate) fn ranges(&self, at: &PageId, rows: &[Range<u64>], entries: &[Bytes]) -> Result<Vec<Range<u64>>> {
        if self.is_whole(rows) {
            return Ok(vec![self.data.clone()]);
        }
        if let Some(stride) = self.stride() {
            // The rows are the page's and the page's rows fit in its buffer: no overflow.
            let place = |r: &Range<u64>| self.data.start + r.start * stride..self.data.start + r.end * stride;
            return Ok(rows.iter().map(place).collect());
        }
        let kept = self.index.as_ref().and_then(|index| index.kept.get());
        let width = self.index.as_ref().map_or(0, |index| index.width);
        let number = |bytes: Option<&[u8]>| -> Result<u64> {
            let bytes = bytes.filter(|bytes| !bytes.is_empty());
            let bytes = bytes.ok_or_else(|| at.corrupt("expected where a row starts, found the index's end"))?;
            Ok(bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)))
        };
        let of_row = |row: u64| {
            let start = usize::try_from(row.checked_mul(width)?).ok()?;
            kept?.get(start..start.checked_add(usize::try_from(width).ok()?)?)
        };
        rows.iter()
            .enumerate()
            .map(|(i, r)| {
                let (start, end) = match kept {
                    Some(_) => (number(of_row(r.start))?, number(of_row(r.end))?),
                    None => (
                        number(entries.get(i * 2).map(|b| &b[..]))?,
                        number(entries.get(i * 2 + 1).map(|b| &b[..]))?,
                    ),
                };
                let size = self.data.end - self.data.start;
                if start > end || end > size {
                    return Err(at.corrupt(format!(
                        "expected rows within the page's {size} bytes, found them at {start}..{end}"
                    )));
                }
                Ok(self.data.start + start..self.data.start + end)
            })
            .collect()
    }
}

impl RowIndex {
    fn new(at: &PageId, range: Range<u64>, num_rows: u64) -> Result<RowIndex> {
        let size = range.end - range.start;
        let entries = num_rows.saturating_add(1);
        match size / entries {
            width @ (1 | 2 | 4 | 8) if size.is_multiple_of(entries) => Ok(RowIndex {
                range,
                width,
                kept: OnceLock::new(),
            }),
            _ => Err(at.corrupt(format!(
                "expected 1, 2, 4 or 8 bytes for where each of {num_rows} rows starts, found {size} bytes for all"
            ))),
        }
    }
}
